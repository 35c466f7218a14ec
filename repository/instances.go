package repository

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"seckill/service"
)

// Instances stores the reports of a shop's instances for each other. No decision depends on them.
type Instances struct{ db *DB }

// NewInstances stores reports in db; the caller closes db.
func NewInstances(db *DB) *Instances { return &Instances{db: db} }

// reportTTL is how long the last report of an instance is kept. Instances report every few seconds.
const reportTTL = time.Hour

// Report replaces the report of the named instance, a JSON document, and returns the last reports of all instances, sorted
// by name. Reports that are older than an hour are left out.
func (s *Instances) Report(ctx context.Context, name string, report []byte) ([]service.Instance, error) {
	d := s.db.dialect
	var rows []struct {
		Name   string
		Report []byte
		Age    int64
	}
	err := s.db.session(ctx).Exec("INSERT INTO instance (name, report, seen_at) VALUES (?, ?, "+d.now+")"+
		d.onConflict("name", "report = ?, seen_at = "+d.now), name, string(report), string(report)).Error
	if err != nil {
		return nil, fmt.Errorf("store the report of this instance: %w", err)
	}
	err = s.db.read(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT name, report, " + d.millisSince("seen_at") + " AS age FROM instance WHERE seen_at > " +
			d.nowPlus(-reportTTL) + " ORDER BY name").Scan(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read the reports of other instances: %w", err)
	}
	instances := make([]service.Instance, len(rows))
	for i, r := range rows {
		instances[i] = service.Instance{Name: r.Name, Report: r.Report, Age: time.Duration(r.Age) * time.Millisecond}
	}
	return instances, nil
}

// Leave removes the report of the instance, and reports that are too old.
func (s *Instances) Leave(ctx context.Context, name string) error {
	err := s.db.session(ctx).Exec("DELETE FROM instance WHERE name = ? OR seen_at <= "+s.db.dialect.nowPlus(-reportTTL), name).Error
	if err != nil {
		return fmt.Errorf("remove the report of this instance: %w", err)
	}
	return nil
}
