package handler

import (
	"github.com/gin-gonic/gin"

	"seckill/service"
)

// Routes returns all routes.
func (h *Handler) Routes() gin.RoutesInfo { return h.engine.Routes() }

// StatusOf returns the map from codes to HTTP status codes.
func StatusOf() map[service.Code]int { return statusOf }
