package board

import (
	"context"
	"encoding/json"
	"time"

	"seckill/service"
)

// Registry is where the instances of a shop report to each other.
type Registry interface {
	// Report stores the named instance's report in place of its last one, and returns the last reports of all instances.
	Report(ctx context.Context, name string, report []byte) ([]service.Instance, error)
	// Leave removes the instance.
	Leave(ctx context.Context, name string) error
}

// report is what an instance says about itself. Others may be of another version: what is missing is zero.
type report struct {
	Began      int64 `json:"began"` // Unix milliseconds
	Placed     int64 `json:"placed"`
	Answered   int64 `json:"answered"`
	OrderRate  int64 `json:"order_rate"`  // orders per second since the last report
	AnswerRate int64 `json:"answer_rate"` // answers per second since the last report
	P99        int64 `json:"p99"`         // microseconds; -1: no orders
	Queue      int64 `json:"queue"`
	Worker     int64 `json:"worker"` // -1: ids are not snowflakes
	Ahead      int64 `json:"ahead"`  // milliseconds
}

// report returns this instance's report, without rates.
func (b *Board) report() report {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.figures
	return report{
		Began: b.events.began.UnixMilli(), Placed: f["placed"], Answered: f.answered(),
		P99: f["p99"], Queue: f["queue"], Worker: f["worker"], Ahead: f["ahead"],
	}
}

// instanceView is an instance on the board.
type instanceView struct {
	Name string `json:"name"`
	Self bool   `json:"self,omitempty"`
	Lost bool   `json:"lost,omitempty"` // it has not reported for a while and did not leave
	report
}

const (
	lostAfter   = 5 * reportPace
	forgetAfter = 10 * time.Minute
)

// instances follows the instances of the shop.
type instances struct {
	registry Registry
	own      string
	events   *timeline

	last   report // this instance's
	sentAt time.Time
	known  map[string]instanceView // the others; nil before the first exchange
}

// exchange reports how this instance is, and returns all instances, this one first. If it fails, the others are as they
// were before.
func (p *instances) exchange(ctx context.Context, now report, before []instanceView) ([]instanceView, error) {
	at := time.Now()
	if ms := at.Sub(p.sentAt).Milliseconds(); !p.sentAt.IsZero() && ms > 0 {
		now.OrderRate = (now.Placed - p.last.Placed) * 1000 / ms
		now.AnswerRate = (now.Answered - p.last.Answered) * 1000 / ms
	}
	p.last, p.sentAt = now, at
	all := []instanceView{{Name: p.own, Self: true, report: now}}
	reports, err := p.registry.Report(ctx, p.own, encode(now))
	if err != nil {
		return append(all, before[min(1, len(before)):]...), err
	}
	return append(all, p.follow(reports)...), nil
}

// follow compares the other instances with the last exchange and adds events for those that came or went.
func (p *instances) follow(reports []service.Instance) (others []instanceView) {
	known := map[string]instanceView{}
	for _, r := range reports {
		if r.Name == p.own || r.Age > forgetAfter {
			continue
		}
		v := instanceView{Name: r.Name, Lost: r.Age > lostAfter}
		_ = json.Unmarshal(r.Report, &v.report) // an unreadable report leaves only the name to show
		known[v.Name] = v
		others = append(others, v)
		before, met := p.known[v.Name]
		switch {
		case p.known == nil:
		case !v.Lost && (!met || before.Lost || before.Began != v.Began):
			p.events.add(InstanceCame, v.Name)
		case v.Lost && met && !before.Lost:
			p.events.add(InstanceLost, v.Name)
		}
	}
	for name, before := range p.known {
		if _, still := known[name]; !still && !before.Lost {
			p.events.add(InstanceWent, name)
		}
	}
	p.known = known
	return others
}
