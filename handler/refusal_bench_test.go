package handler_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/golang-jwt/jwt/v5"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
)

// soldOutStore is a database in which other users have bought all units of voucher 7.
type soldOutStore struct {
	service.OrderStore
	service.VoucherStore
	terms service.Terms
}

func (s *soldOutStore) Voucher(context.Context, idgen.ID) (service.Voucher, error) {
	return service.Voucher{ID: 7, Title: "T", PayWithin: time.Minute, Terms: s.terms, ServerTime: time.Now()}, nil
}

func (s *soldOutStore) Terms(context.Context, idgen.ID) (service.Terms, time.Time, error) {
	return s.terms, time.Now(), nil
}

func (s *soldOutStore) Place(_ context.Context, _ idgen.ID, batch []*service.Placement) {
	for _, p := range batch {
		p.Err = service.ErrSoldOut
	}
}

func (s *soldOutStore) Buyers(context.Context, idgen.ID) ([]service.UserID, int64, error) {
	return []service.UserID{1, 2, 3}, s.terms.Placed, nil
}

// counter hands out ids for orders that are never placed.
type counter struct{ idgen.Generator }

func (counter) NextN(_ context.Context, ids []idgen.ID) error {
	for i := range ids {
		ids[i] = idgen.ID(i + 1)
	}
	return nil
}

// newSoldOutShop returns the real service with that database.
func newSoldOutShop() *service.Shop {
	store := &soldOutStore{terms: service.Terms{
		Total: 3, Placed: 3, UserLimit: 1, StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	}}
	return service.New(service.Config{
		Orders: store, Vouchers: store, Locker: lock.None(), IDs: counter{}, Log: noLog(),
	})
}

func TestPlaceOrder_SoldOut(t *testing.T) {
	a := serve(t, newSoldOutShop(), nil)
	want := fmt.Sprintf(problemFmt, "Conflict", 409, "sold-out", service.ErrSoldOut.Message, "")
	for i := range 5 { // the database refuses the first, the sold-out gate the others
		if got := a.send("POST", place, goodBody, as(t, 42, token.User)...); got.status != 409 || got.body != want {
			t.Errorf("refusal %d: %d %s", i, got.status, got.body)
		}
	}
}

// newBare returns a minimal gin handler for the same request: it decodes, verifies the token, and refuses.
func newBare(verify func(string) error) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	refusal := gin.H{"code": "sold-out", "detail": "sold out"}
	e.POST(place, func(c *gin.Context) {
		var order struct {
			VoucherID idgen.ID `json:"voucher_id" binding:"required"`
		}
		if err := c.ShouldBindJSON(&order); err != nil {
			c.JSON(http.StatusBadRequest, gin.H{"code": "malformed"})
			return
		}
		if err := verify(strings.TrimPrefix(c.GetHeader("Authorization"), "Bearer ")); err != nil {
			c.JSON(http.StatusUnauthorized, gin.H{"code": "unauthenticated"})
			return
		}
		c.JSON(http.StatusConflict, refusal)
	})
	return e
}

func verifyNothing(string) error { return nil }

// verifyUncached parses the token each time.
func verifyUncached(signed string) error {
	_, err := jwt.Parse(signed, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired())
	return err
}

// verifyCached uses the verifier of the shop.
func verifyCached(b *testing.B) func(string) error {
	v, err := token.NewVerifier(token.Config{Keys: [][]byte{key}})
	if err != nil {
		b.Fatal(err)
	}
	return func(signed string) error { _, err := v.Verify(signed); return err }
}

// candidates returns the handlers to compare; the first three are the baseline.
func candidates(b *testing.B) map[string]http.Handler {
	always := newFakeShop()
	always.err = service.ErrSoldOut
	logTo := func(perSecond int) func(*handler.Config) {
		file, err := os.Create(b.TempDir() + "/access.log")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = file.Close() })
		return func(c *handler.Config) {
			c.Log, c.AccessLog = slog.New(slog.NewJSONHandler(file, nil)), perSecond
		}
	}
	limits := func(c *handler.Config) {
		c.UserLimit = handler.Rate{PerSecond: 1e9, Burst: 1e9}
		c.AddressLimit = handler.Rate{PerSecond: 1e9, Burst: 1e9}
	}
	return map[string]http.Handler{
		"bare":                 newBare(verifyNothing),
		"bare+token":           newBare(verifyUncached),
		"bare+cached-token":    newBare(verifyCached(b)),
		"shop":                 newHandler(b, newSoldOutShop(), nil),
		"shop+limits":          newHandler(b, newSoldOutShop(), limits),
		"shop+access-log":      newHandler(b, newSoldOutShop(), logTo(0)),
		"shop+full-access-log": newHandler(b, newSoldOutShop(), logTo(-1)),
		"handler-alone":        newHandler(b, alwaysSoldOut{}, nil),
	}
}

// alwaysSoldOut is a shop that costs nothing.
type alwaysSoldOut struct{ handler.Shop }

func (alwaysSoldOut) PlaceOrder(context.Context, service.PlaceRequest) (service.Order, bool, error) {
	return service.Order{}, false, service.ErrSoldOut
}

var candidateOrder = []string{
	"bare", "bare+token", "bare+cached-token", "handler-alone", "shop", "shop+limits", "shop+access-log", "shop+full-access-log",
}

// BenchmarkRefusalRecorded measures the handlers without the network.
func BenchmarkRefusalRecorded(b *testing.B) {
	all := candidates(b)
	for _, name := range []string{"bare", "bare+token", "bare+cached-token", "handler-alone"} {
		b.Run(name, func(b *testing.B) {
			body, w := strings.NewReader(""), new(sink)
			r := httptest.NewRequest("POST", place, nil)
			r.Header.Set("Authorization", "Bearer "+sign(b, token.Claims{User: 42, Role: token.User}))
			r.Header.Set("Content-Type", "application/json")
			r.Body, r.ContentLength = io.NopCloser(body), int64(len(goodBody))
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(goodBody)
				clear(w.header)
				all[name].ServeHTTP(w, r)
				if w.status != http.StatusConflict {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// sink is a ResponseWriter that costs nothing.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header {
	if s.header == nil {
		s.header = http.Header{}
	}
	return s.header
}
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRefusal measures a real server on loopback with many connections. Rounds of the candidates alternate, so that
// other load of the machine affects all of them; compare the ratios of one run.
func BenchmarkRefusal(b *testing.B) {
	for _, clients := range []int{64, 256} {
		b.Run(strconv.Itoa(clients)+"-clients", func(b *testing.B) { raceRefusals(b, clients) })
	}
}

const requestsPerRound = 2048

func raceRefusals(b *testing.B, clients int) {
	all := candidates(b)
	spent := map[string]cost{}
	races := map[string]*race{}
	for _, name := range candidateOrder {
		races[name] = newRace(b, all[name], clients)
		races[name].run(b, requestsPerRound) // warm up
	}
	for b.Loop() {
		for _, name := range candidateOrder {
			spent[name] = spent[name].plus(races[name].run(b, requestsPerRound))
		}
	}
	for _, name := range candidateOrder {
		b.ReportMetric(float64(b.N*requestsPerRound)/spent[name].wall.Seconds(), name+"/s")
	}
	for _, ratio := range [][2]string{
		{"shop", "bare"}, {"shop", "bare+token"}, {"shop", "bare+cached-token"},
		{"handler-alone", "bare+cached-token"}, {"shop+limits", "shop"},
		{"shop+access-log", "shop"}, {"shop+full-access-log", "shop"},
	} {
		one, other := spent[ratio[0]], spent[ratio[1]]
		b.ReportMetric(other.wall.Seconds()/one.wall.Seconds(), ratio[0]+":"+ratio[1])
		b.ReportMetric(other.cpu.Seconds()/one.cpu.Seconds(), ratio[0]+":"+ratio[1]+"(cpu)")
	}
	b.ReportMetric(0, "ns/op")
}
