package handler

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/swaggest/swgui/v5emb"
)

//go:embed openapi.yaml
var openAPI []byte

// OpenAPI is the description of the API, in YAML. It must not be changed.
func OpenAPI() []byte { return openAPI }

func serveOpenAPI(c *gin.Context) { c.Data(http.StatusOK, "application/yaml", openAPI) }

// docsPolicy has the browser see to it that the page loads nothing from elsewhere. The page's own script and styles
// are inline.
const docsPolicy = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"

// newDocs serves Swagger UI, which comes with the program.
func newDocs() gin.HandlerFunc {
	ui := v5emb.New("Seckill", "/openapi.yaml", "/docs/")
	return func(c *gin.Context) {
		c.Header("Content-Security-Policy", docsPolicy)
		ui.ServeHTTP(c.Writer, c.Request)
	}
}
