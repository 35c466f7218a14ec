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
func (i *instances) exchange(ctx context.Context, now report, before []instanceView) ([]instanceView, error) {
	at := time.Now()
	if ms := at.Sub(i.sentAt).Milliseconds(); !i.sentAt.IsZero() && ms > 0 {
		now.OrderRate = (now.Placed - i.last.Placed) * 1000 / ms
		now.AnswerRate = (now.Answered - i.last.Answered) * 1000 / ms
	}
	i.last, i.sentAt = now, at
	all := []instanceView{{Name: i.own, Self: true, report: now}}
	reports, err := i.registry.Report(ctx, i.own, encode(now))
	if err != nil {
		return append(all, before[min(1, len(before)):]...), err
	}
	return append(all, i.follow(reports)...), nil
}

// follow compares the other instances with the last exchange and adds events for those that came or went.
func (i *instances) follow(reports []service.Instance) (others []instanceView) {
	known := map[string]instanceView{}
	for _, r := range reports {
		if r.Name == i.own || r.Age > forgetAfter {
			continue
		}
		v := instanceView{Name: r.Name, Lost: r.Age > lostAfter}
		_ = json.Unmarshal(r.Report, &v.report) // an unreadable report leaves only the name to show
		known[v.Name] = v
		others = append(others, v)
		before, found := i.known[v.Name]
		switch {
		case i.known == nil:
		case !v.Lost && (!found || before.Lost || before.Began != v.Began):
			i.events.add(InstanceCame, v.Name)
		case v.Lost && found && !before.Lost:
			i.events.add(InstanceLost, v.Name)
		}
	}
	for name, before := range i.known {
		if _, still := known[name]; !still && !before.Lost {
			i.events.add(InstanceWent, name)
		}
	}
	i.known = known
	return others
}
