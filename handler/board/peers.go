package board

import (
	"context"
	"encoding/json"
	"time"

	"seckill/service"
)

// Registry is where the instances of a shop tell each other how they are.
type Registry interface {
	// Report stores what the named instance says about itself, in place of what it said before, and returns what all
	// instances have said last, its own included.
	Report(ctx context.Context, name string, report []byte) ([]service.Instance, error)
	// Leave removes the instance.
	Leave(ctx context.Context, name string) error
}

// report is what an instance says about itself. Others may be of another version: what is missing is zero.
type report struct {
	Began      int64 `json:"began"` // Unix milliseconds
	Placed     int64 `json:"placed"`
	Answered   int64 `json:"answered"`
	OrderRate  int64 `json:"order_rate"` // a second, since the last report
	AnswerRate int64 `json:"answer_rate"`
	P99        int64 `json:"p99"` // microseconds; -1: nothing was placed of late
	Queue      int64 `json:"queue"`
	Worker     int64 `json:"worker"` // -1: ids are not snowflakes
	Backup     int64 `json:"backup"`
	Ahead      int64 `json:"ahead"` // milliseconds
	LockOpen   int64 `json:"lock_open"`
	BrokerAway int64 `json:"broker_away"`
	IDsAway    int64 `json:"ids_away"`
}

// instanceView is an instance on the board.
type instanceView struct {
	Name string `json:"name"`
	Self bool   `json:"self,omitempty"`
	Lost bool   `json:"lost,omitempty"` // it has not been heard of for a while, and did not say that it goes
	report
}

const (
	lostAfter = 5 * beatPace
	gone      = 10 * time.Minute // until nobody talks of a lost instance any more
)

// peers are the instances of the shop.
type peers struct {
	meter    *Meter
	own      string
	registry Registry

	last     report // of this instance
	reported time.Time
	known    map[string]instanceView // nil before the first reading
	shown    []instanceView
}

// beat tells how this instance is, and hears of the others.
func (p *peers) beat(ctx context.Context, now report) error {
	at := time.Now()
	if passed := at.Sub(p.reported).Milliseconds(); !p.reported.IsZero() && passed > 0 {
		now.OrderRate = (now.Placed - p.last.Placed) * 1000 / passed
		now.AnswerRate = (now.Answered - p.last.Answered) * 1000 / passed
	}
	p.last, p.reported = now, at
	self := instanceView{Name: p.own, Self: true, report: now}
	if p.registry == nil {
		p.shown = []instanceView{self}
		return nil
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	others, err := p.registry.Report(ctx, p.own, text)
	if err != nil {
		p.update(self)
		return err
	}
	p.learn(self, others)
	return nil
}

// update replaces this instance's own row alone.
func (p *peers) update(self instanceView) {
	shown := []instanceView{self}
	for _, v := range p.shown {
		if !v.Self {
			shown = append(shown, v)
		}
	}
	p.shown = shown
}

// learn puts on the line who came and went.
func (p *peers) learn(self instanceView, all []service.Instance) {
	known := map[string]instanceView{}
	shown := []instanceView{self}
	for _, one := range all {
		if one.Name == p.own || one.Age > gone {
			continue
		}
		v := instanceView{Name: one.Name, Lost: one.Age > lostAfter}
		_ = json.Unmarshal(one.Report, &v.report) // one that cannot be read is shown by its name
		known[v.Name] = v
		shown = append(shown, v)
		before, met := p.known[v.Name]
		switch {
		case p.known == nil:
		case !v.Lost && (!met || before.Lost || before.Began != v.Began):
			p.meter.event(InstanceCame, v.Name)
		case v.Lost && met && !before.Lost:
			p.meter.event(InstanceLost, v.Name)
		}
	}
	for name, before := range p.known {
		if _, still := known[name]; !still && !before.Lost {
			p.meter.event(InstanceWent, name)
		}
	}
	p.known, p.shown = known, shown
}

// list is a copy, so that it can be handed to others.
func (p *peers) list() []instanceView { return append([]instanceView{}, p.shown...) }
