package repository

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"seckill/service"
)

// Instances is where the instances of a shop tell each other how they are. Nothing is decided by what stands there.
type Instances struct{ db *DB }

// NewInstances keeps reports in db, which stays the caller's to close.
func NewInstances(db *DB) *Instances { return &Instances{db: db} }

// instanceTime is how long an instance that does not report any more is remembered. Reports are every few seconds.
const instanceTime = time.Hour

// Report stores what the named instance says about itself, a JSON document, in place of what it said before, and returns
// what every instance has said last, its own included, by name. Those that fell silent an hour ago are forgotten.
func (s *Instances) Report(ctx context.Context, name string, report []byte) ([]service.Instance, error) {
	d := s.db.dialect
	var rows []struct {
		Name   string
		Report []byte
		Age    int64
	}
	err := s.db.session(ctx).Exec("INSERT INTO instance (name, report, seen_at) VALUES (?, ?, "+d.now+") "+
		d.onConflict("name", "report = ?, seen_at = "+d.now), name, string(report), string(report)).Error
	if err != nil {
		return nil, fmt.Errorf("report to the other instances: %w", err)
	}
	err = s.db.read(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT name, report, " + d.millisSince("seen_at") + " AS age FROM instance WHERE seen_at > " +
			d.nowPlus(-instanceTime) + " ORDER BY name").Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read what other instances report: %w", err)
	}
	instances := make([]service.Instance, len(rows))
	for i, r := range rows {
		instances[i] = service.Instance{Name: r.Name, Report: r.Report, Age: time.Duration(r.Age) * time.Millisecond}
	}
	return instances, nil
}

// Leave removes the instance, and those that fell silent long ago.
func (s *Instances) Leave(ctx context.Context, name string) error {
	err := s.db.session(ctx).Exec("DELETE FROM instance WHERE name = ? OR seen_at <= "+s.db.dialect.nowPlus(-instanceTime), name).Error
	if err != nil {
		return fmt.Errorf("take leave of the other instances: %w", err)
	}
	return nil
}
