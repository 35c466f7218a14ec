package compare

import (
	"fmt"
	"io"
	"seckill/cmd/internal/cli"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
)

// comparison is what all turns came to.
type comparison struct {
	OK      bool        `json:"ok"`
	Words   []string    `json:"words"` // the ratios that count
	Broken  []string    `json:"broken,omitempty"`
	Notes   []string    `json:"notes,omitempty"`
	Machine environment `json:"machine"`
	Clients int         `json:"clients"`
	Rounds  int         `json:"rounds"`
	Summary []summary   `json:"summary"` // one for each combination
	Turns   []turn      `json:"turns"`
}

// summary has the medians over a combination's turns; what must be zero is added up.
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

func summarize(c *Command, turns []turn, m environment) *comparison {
	r := &comparison{OK: true, Machine: m, Clients: c.Clients, Rounds: c.Rounds, Turns: turns}
	for _, combination := range c.combinations() {
		r.Summary = append(r.Summary, summarizeOne(combination, turns))
	}
	for _, t := range turns {
		for _, broken := range t.Broken {
			r.Broken = append(r.Broken, fmt.Sprintf("%s, round %d: %s", t.combination, t.Round, broken))
		}
		for _, warning := range t.Warnings {
			r.Notes = append(r.Notes, fmt.Sprintf("%s, round %d, the shop warned: %s", t.combination, t.Round, warning))
		}
	}
	r.OK = len(r.Broken) == 0
	r.Words = append(r.batchWords(c), r.lockWords(c)...)
	return r
}

func summarizeOne(c combination, all []turn) summary {
	var turns []turn
	s := summary{combination: c}
	for _, t := range all {
		if t.combination != c {
			continue
		}
		turns = append(turns, t)
		s.Stock, s.Sold = s.Stock+t.Stock, s.Sold+t.Sold
		s.Oversold, s.Undersold = s.Oversold+t.Oversold, s.Undersold+t.Undersold
		s.Duplicates, s.Unknown = s.Duplicates+t.Duplicates, s.Unknown+t.Unknown
	}
	rates := collect(turns, func(t *turn) float64 { return t.OrdersPerSecond })
	s.OrdersPerSecond, s.Slowest, s.Fastest = median(rates), slices.Min(rates), slices.Max(rates)
	s.AcceptedP50 = median(collect(turns, func(t *turn) time.Duration { return t.Accepted.P50 }))
	s.AcceptedP99 = median(collect(turns, func(t *turn) time.Duration { return t.Accepted.P99 }))
	s.RefusedP50 = median(collect(turns, func(t *turn) time.Duration { return t.Refused.P50 }))
	s.RefusedP99 = median(collect(turns, func(t *turn) time.Duration { return t.Refused.P99 }))
	s.Transactions = median(collect(turns, func(t *turn) float64 { return t.Transactions }))
	s.Commands = median(collect(turns, func(t *turn) float64 { return t.Commands }))
	s.Scripts = median(collect(turns, func(t *turn) float64 { return t.Scripts }))
	s.CPU = median(collect(turns, func(t *turn) time.Duration { return t.Shop.CPU }))
	s.Resident = median(collect(turns, func(t *turn) int64 { return t.Shop.Resident }))
	return s
}

func collect[T any](turns []turn, value func(*turn) T) []T {
	values := make([]T, len(turns))
	for i := range turns {
		values[i] = value(&turns[i])
	}
	return values
}

// median is the middle value, or halfway between the two in the middle.
func median[T ~int64 | ~float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return sorted[middle-1]/2 + sorted[middle]/2
}

// ratio is the median, over the rounds, of one combination's figure to another's in the same round: what disturbs a
// round disturbs both.
func (r *comparison) ratio(of, to combination, figure func(*turn) float64) float64 {
	byRound := map[int]map[combination]float64{}
	for i := range r.Turns {
		t := &r.Turns[i]
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

func rateOf(t *turn) float64 { return t.OrdersPerSecond }
func tailOf(t *turn) float64 { return float64(t.Accepted.P99) }

// batchWords say what the largest batches gain over the smallest, for each lock.
func (r *comparison) batchWords(c *Command) (words []string) {
	small, large := slices.Min(c.CommitBatchMax), slices.Max(c.CommitBatchMax)
	if small == large {
		return nil
	}
	for _, lock := range c.Lock {
		of, to := combination{lock, large}, combination{lock, small}
		a, b := summaryOf(r.Summary, of), summaryOf(r.Summary, to)
		words = append(words, fmt.Sprintf(
			"With --lock=%s, batches of up to %d sell %s times as many orders a second as batches of up to %d (%s against %s); the p99 of an accepted order is %s times theirs (%s against %s).",
			lock, large, factor(r.ratio(of, to, rateOf)), small, cli.PerSecond(a.OrdersPerSecond), cli.PerSecond(b.OrdersPerSecond),
			factor(r.ratio(of, to, tailOf)), cli.Short(a.AcceptedP99), cli.Short(b.AcceptedP99)))
	}
	return words
}

// lockWords say what a lock leaves of the rate without one, for each batch size.
func (r *comparison) lockWords(c *Command) (words []string) {
	if !slices.Contains(c.Lock, "none") {
		return nil
	}
	for _, lock := range c.Lock {
		for _, batch := range c.CommitBatchMax {
			if lock != "none" {
				words = append(words, fmt.Sprintf("With batches of up to %d, --lock=%s sells %s times as many orders a second as --lock=none.",
					batch, lock, factor(r.ratio(combination{lock, batch}, combination{"none", batch}, rateOf))))
			}
		}
	}
	return words
}

func summaryOf(all []summary, c combination) summary {
	i := slices.IndexFunc(all, func(s summary) bool { return s.combination == c })
	return all[i]
}

// factor writes a ratio with three digits or so.
func factor(f float64) string {
	switch {
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f >= 0.1:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.3f", f)
}

// table lays the summaries out, for text and page alike.
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
		text += " Redis/order: commands as Redis counts them, those inside of scripts included (scripts alone)."
	}
	return text
}

// measuredOn describes machine and servers.
func (r *comparison) measuredOn() string {
	return r.Machine.Describe(r.Machine.Database, r.Machine.Redis)
}

// verdict says whether everything held.
func (r *comparison) verdict() string {
	if r.OK {
		return fmt.Sprintf("Everything held in all %d turns: nothing oversold, undersold or sold twice, every answer true, every audit clean.", len(r.Turns))
	}
	return fmt.Sprintf("NOT EVERYTHING HELD: %d findings.", len(r.Broken))
}

// print writes the result for people: the ratios that count, then the table.
func (r *comparison) print(w io.Writer) {
	fmt.Fprintln(w)
	for _, line := range r.Words {
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
