package handler

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/gin-gonic/gin"

	"seckill/service"
	"seckill/service/idgen"
)

// defaultPage is how many rows a page of a list has if the client does not say.
const defaultPage = 20

// page reads the query of a list: ids below before (0: from the newest on), at most limit of them.
func page(c *gin.Context) (before idgen.ID, limit int, err error) {
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return 0, 0, newProblem(codeMalformed, "the query is not well-formed")
	}
	if query.Has("before") {
		if before, err = idgen.ParseID(query.Get("before")); err != nil {
			return 0, 0, invalid("before", "must be the id that the last page gave as next")
		}
	}
	limit = defaultPage
	if query.Has("limit") {
		limit, err = strconv.Atoi(query.Get("limit"))
		if err != nil || limit < 1 || limit > service.MaxPage {
			return 0, 0, invalid("limit", fmt.Sprintf("must be a number from 1 to %d", service.MaxPage))
		}
	}
	return before, limit, nil
}
