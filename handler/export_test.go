package handler

import (
	"github.com/gin-gonic/gin"

	"seckill/service"
)

// Routes lists what the router knows.
func (h *Handler) Routes() gin.RoutesInfo { return h.engine.Routes() }

// StatusOf is the map from codes to HTTP.
func StatusOf() map[service.Code]int { return statusOf }
