package repository

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"seckill/repository/repotest/dbserver"
	"seckill/service"
	"seckill/service/idgen"
)

// BenchmarkIndexCost measures what each index of the tables that every order is written to costs: how much sooner a
// batch of 256 is durable without it (in % of the median time with all), how many bytes of redo log it writes an order,
// and how many bytes of disk. The databases with and without the index alternate batch by batch, so that other load on the
// machine affects both; the log is that of a server that does nothing else. Run it with -benchtime 200x.
func BenchmarkIndexCost(b *testing.B) {
	for _, engine := range dbserver.Engines() {
		b.Run(string(engine), func(b *testing.B) { indexCost(b, engine) })
	}
}

func indexCost(b *testing.B, engine dbserver.Engine) {
	dsn := ownServer(b, engine)
	open := func() *DB { return openDB(b, benchDatabase(b, string(engine), dsn)) }
	all := open()
	lanes := []*indexLane{newIndexLane(b, all, "")}
	for table, indexes := range secondaryIndexes(b, all) {
		for _, index := range indexes {
			lane := newIndexLane(b, open(), index)
			if err := lane.db.gorm.Exec("ALTER TABLE " + table + " DROP INDEX " + index).Error; err != nil {
				b.Fatal(err)
			}
			lanes = append(lanes, lane)
		}
	}
	turn := 0
	for b.Loop() {
		for i := range lanes { // in changing order
			lanes[(i+turn)%len(lanes)].batch(b)
		}
		turn++
	}
	for _, lane := range lanes[1:] {
		b.ReportMetric(float64(lanes[0].redo-lane.redo)/float64(lane.user), "redo/"+lane.without)
		b.ReportMetric(100*(1-lane.median()/lanes[0].median()), "%time/"+lane.without)
		b.ReportMetric(indexBytes(b, all, lane.without)/float64(lanes[0].user), "B/"+lane.without)
	}
	b.ReportMetric(float64(lanes[0].redo)/float64(lanes[0].user), "redo/all")
}

// ownServer starts a server for this benchmark alone, with the settings of the shared ones.
func ownServer(b *testing.B, engine dbserver.Engine) (dsn string) {
	b.Helper()
	server, err := dbserver.Start(b.Context(), engine)
	if errors.Is(err, dbserver.ErrUnavailable) {
		b.Skip(err)
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Remove(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return server.DSN("")
}

// indexLane is a database that lacks an index, or none.
type indexLane struct {
	db      *DB
	without string
	voucher idgen.ID
	user    service.UserID
	took    []time.Duration
	redo    int64
}

func newIndexLane(b *testing.B, db *DB, without string) *indexLane {
	return &indexLane{db: db, without: without, voucher: onSale(b, db, service.MaxStock, 1)}
}

func (l *indexLane) batch(b *testing.B) {
	batch := make([]*service.Placement, 256)
	for i := range batch {
		l.user++
		// Users come in random order, as in a sale.
		batch[i] = placement(l.voucher, l.user*0x9E3779B1%(1<<40), "")
	}
	start, written := time.Now(), l.logWritten(b)
	NewOrders(l.db).Place(context.Background(), l.voucher, batch)
	l.took = append(l.took, time.Since(start))
	l.redo += l.logWritten(b) - written
	for _, p := range batch {
		if p.Err != nil {
			b.Fatal(p.Err)
		}
	}
}

// logWritten is how many bytes the server has written to its redo log.
func (l *indexLane) logWritten(b *testing.B) (n int64) {
	var name string
	if err := l.db.gorm.Raw("SHOW GLOBAL STATUS LIKE 'Innodb_os_log_written'").Row().Scan(&name, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// median is the time of a batch in seconds. The slowest flushes would dominate the mean.
func (l *indexLane) median() float64 {
	slices.Sort(l.took)
	return l.took[len(l.took)/2].Seconds()
}

// secondaryIndexes lists them by table.
func secondaryIndexes(b *testing.B, db *DB) map[string][]string {
	b.Helper()
	var rows []struct{ Tab, Idx string }
	err := db.gorm.Raw("SELECT DISTINCT table_name AS tab, index_name AS idx FROM information_schema.statistics" +
		" WHERE table_schema = DATABASE() AND table_name IN ('voucher_order', 'outbox_event') AND index_name <> 'PRIMARY'").Scan(&rows).Error
	if err != nil || len(rows) < 3 {
		b.Fatal(rows, err)
	}
	found := map[string][]string{}
	for _, r := range rows {
		found[r.Tab] = append(found[r.Tab], r.Idx)
	}
	return found
}

// indexBytes is how much an index takes.
func indexBytes(b *testing.B, db *DB, index string) (bytes float64) {
	b.Helper()
	for _, table := range []string{"voucher_order", "outbox_event"} {
		if _, err := db.sql.ExecContext(context.Background(), "ANALYZE TABLE "+table); err != nil {
			b.Fatal(err)
		}
	}
	err := db.gorm.Raw("SELECT MAX(stat_value) * @@innodb_page_size FROM mysql.innodb_index_stats"+
		" WHERE database_name = DATABASE() AND stat_name = 'size' AND index_name = ?", index).Row().Scan(&bytes)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}
