package compare

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"seckill/cmd/internal/cli"
)

// comparison is the result of all trials.
type comparison struct {
	OK      bool      `json:"ok"`
	Ratios  []string  `json:"ratios"` // in sentences
	Broken  []string  `json:"broken,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
	Machine platform  `json:"machine"`
	Clients int       `json:"clients"`
	Rounds  int       `json:"rounds"`
	Summary []summary `json:"summary"` // one for each combination
	Trials  []trial   `json:"trials"`
}

// summary has the medians of a combination's trials, and the sums of what must be zero.
type summary struct {
	combination
	OrdersPerSecond float64       `json:"orders_per_second"`
	Slowest         float64       `json:"orders_per_second_min"`
	Fastest         float64       `json:"orders_per_second_max"`
	AcceptedP50     time.Duration `json:"accepted_p50_ns"`
	AcceptedP99     time.Duration `json:"accepted_p99_ns"`
	RefusedP50      time.Duration `json:"refused_p50_ns"`
	RefusedP99      time.Duration `json:"refused_p99_ns"`
	Transactions    float64       `json:"transactions_per_order"`
	Commands        float64       `json:"redis_commands_per_order"`
	Scripts         float64       `json:"redis_scripts_per_order"`
	CPU             time.Duration `json:"shop_cpu_ns"`
	Resident        int64         `json:"shop_resident_bytes"`
	Stock           int64         `json:"stock"`
	Sold            int64         `json:"sold"`
	Oversold        int64         `json:"oversold"`
	Undersold       int64         `json:"undersold"`
	Duplicates      int64         `json:"duplicates"`
	Unknown         int64         `json:"unknown"`
}

func summarize(c *Command, trials []trial, m platform) *comparison {
	r := &comparison{OK: true, Machine: m, Clients: c.Clients, Rounds: c.Rounds, Trials: trials}
	for _, combination := range c.combinations() {
		r.Summary = append(r.Summary, summarizeOne(combination, trials))
	}
	for _, t := range trials {
		for _, broken := range t.Broken {
			r.Broken = append(r.Broken, fmt.Sprintf("%s, round %d: %s", t.combination, t.Round, broken))
		}
		for _, warning := range t.Warnings {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, round %d, warning of the shop: %s", t.combination, t.Round, warning))
		}
	}
	r.OK = len(r.Broken) == 0
	r.Ratios = append(r.batchRatios(c), r.lockRatios(c)...)
	return r
}

func summarizeOne(c combination, all []trial) summary {
	var trials []trial
	s := summary{combination: c}
	for _, t := range all {
		if t.combination != c {
			continue
		}
		trials = append(trials, t)
		s.Stock, s.Sold = s.Stock+t.Stock, s.Sold+t.Sold
		s.Oversold, s.Undersold = s.Oversold+t.Oversold, s.Undersold+t.Undersold
		s.Duplicates, s.Unknown = s.Duplicates+t.Duplicates, s.Unknown+t.Unknown
	}
	rates := collect(trials, func(t *trial) float64 { return t.OrdersPerSecond })
	s.OrdersPerSecond, s.Slowest, s.Fastest = median(rates), slices.Min(rates), slices.Max(rates)
	s.AcceptedP50 = median(collect(trials, func(t *trial) time.Duration { return t.Accepted.P50 }))
	s.AcceptedP99 = median(collect(trials, func(t *trial) time.Duration { return t.Accepted.P99 }))
	s.RefusedP50 = median(collect(trials, func(t *trial) time.Duration { return t.Refused.P50 }))
	s.RefusedP99 = median(collect(trials, func(t *trial) time.Duration { return t.Refused.P99 }))
	s.Transactions = median(collect(trials, func(t *trial) float64 { return t.Transactions }))
	s.Commands = median(collect(trials, func(t *trial) float64 { return t.Commands }))
	s.Scripts = median(collect(trials, func(t *trial) float64 { return t.Scripts }))
	s.CPU = median(collect(trials, func(t *trial) time.Duration { return t.Shop.CPU }))
	s.Resident = median(collect(trials, func(t *trial) int64 { return t.Shop.Resident }))
	return s
}

func collect[T any](trials []trial, value func(*trial) T) []T {
	values := make([]T, len(trials))
	for i := range trials {
		values[i] = value(&trials[i])
	}
	return values
}

// median is the middle value, or the mean of the two in the middle.
func median[T ~int64 | ~float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return sorted[middle-1]/2 + sorted[middle]/2
}

// ratio is the median of the ratios of two combinations' figures in the same round: a disturbance affects a whole round.
func (r *comparison) ratio(of, to combination, figure func(*trial) float64) float64 {
	byRound := map[int]map[combination]float64{}
	for i := range r.Trials {
		t := &r.Trials[i]
		if byRound[t.Round] == nil {
			byRound[t.Round] = map[combination]float64{}
		}
		byRound[t.Round][t.combination] = figure(t)
	}
	var ratios []float64
	for _, figures := range byRound {
		if figures[to] != 0 {
			ratios = append(ratios, figures[of]/figures[to])
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	return median(ratios)
}

func rateOf(t *trial) float64 { return t.OrdersPerSecond }
func tailOf(t *trial) float64 { return float64(t.Accepted.P99) }

// batchRatios compare the largest batches with the smallest, for each lock.
func (r *comparison) batchRatios(c *Command) (sentences []string) {
	small, large := slices.Min(c.CommitBatchMax), slices.Max(c.CommitBatchMax)
	if small == large {
		return nil
	}
	for _, lock := range c.Lock {
		of, to := combination{lock, large}, combination{lock, small}
		a, b := summaryOf(r.Summary, of), summaryOf(r.Summary, to)
		sentences = append(sentences, fmt.Sprintf(
			"With --lock=%s, batches of up to %d orders reach %s times the throughput of batches of up to %d (%s and %s orders/s), and %s times the p99 latency (%s and %s).",
			lock, large, factor(r.ratio(of, to, rateOf)), small, cli.PerSecond(a.OrdersPerSecond), cli.PerSecond(b.OrdersPerSecond),
			factor(r.ratio(of, to, tailOf)), cli.Short(a.AcceptedP99), cli.Short(b.AcceptedP99)))
	}
	return sentences
}

// lockRatios compare each lock with none, for each batch size.
func (r *comparison) lockRatios(c *Command) (sentences []string) {
	if !slices.Contains(c.Lock, "none") {
		return nil
	}
	for _, lock := range c.Lock {
		for _, batch := range c.CommitBatchMax {
			if lock != "none" {
				sentences = append(sentences, fmt.Sprintf("With batches of up to %d orders, --lock=%s reaches %s times the throughput of --lock=none.",
					batch, lock, factor(r.ratio(combination{lock, batch}, combination{"none", batch}, rateOf))))
			}
		}
	}
	return sentences
}

func summaryOf(all []summary, c combination) summary {
	i := slices.IndexFunc(all, func(s summary) bool { return s.combination == c })
	return all[i]
}

// factor writes a ratio with about three digits.
func factor(f float64) string {
	switch {
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 0.1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.3f", f)
}

// table returns the summaries as a table, for text and page.
func (r *comparison) table() [][]string {
	rows := [][]string{{"lock", "batch", "orders/s", "min–max", "p50", "p99", "refused p50", "p99", "tx/order", "Redis/order", "sold", "over", "under", "dupl."}}
	for _, s := range r.Summary {
		commands := "–"
		if s.Commands > 0 {
			commands = fmt.Sprintf("%.2f (%.2f)", s.Commands, s.Scripts)
		}
		rows = append(rows, []string{
			s.Lock, fmt.Sprint(s.BatchMax), cli.PerSecond(s.OrdersPerSecond), cli.PerSecond(s.Slowest) + "–" + cli.PerSecond(s.Fastest),
			cli.Short(s.AcceptedP50), cli.Short(s.AcceptedP99), cli.Short(s.RefusedP50), cli.Short(s.RefusedP99),
			factor(s.Transactions), commands, humanize.Comma(s.Sold) + " of " + humanize.Comma(s.Stock),
			fmt.Sprint(s.Oversold), fmt.Sprint(s.Undersold), fmt.Sprint(s.Duplicates),
		})
	}
	return rows
}

// legend explains the table's columns.
func (r *comparison) legend() string {
	text := fmt.Sprintf("Medians of %d rounds, %d clients. tx/order: %s.", r.Rounds, r.Clients, r.Machine.Counted)
	if r.Machine.Redis != "" {
		text += " Redis/order: commands, including those inside of scripts (scripts)."
	}
	return text
}

// measuredOn describes machine and servers.
func (r *comparison) measuredOn() string {
	return r.Machine.Describe(r.Machine.Database, r.Machine.Redis)
}

// verdict tells in a sentence whether everything holds.
func (r *comparison) verdict() string {
	if r.OK {
		return fmt.Sprintf("Everything holds in all %d trials: nothing oversold, undersold or sold twice, no order lost, and every audit is clean.", len(r.Trials))
	}
	return fmt.Sprintf("NOT EVERYTHING HOLDS: %d findings.", len(r.Broken))
}

// print writes the result for people: the ratios, then the table.
func (r *comparison) print(w io.Writer) {
	fmt.Fprintln(w)
	for _, line := range r.Ratios {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "%s\n", r.verdict())
	for _, broken := range r.Broken {
		fmt.Fprintf(w, "  BROKEN  %s\n", broken)
	}
	fmt.Fprintln(w)
	_ = cli.PrintTable(w, r.table()) // a failure to write shows on the terminal
	fmt.Fprintf(w, "\n%s\n%s\n", r.legend(), r.measuredOn())
	for _, note := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}
