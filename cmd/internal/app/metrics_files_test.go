package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// observe is where the files for Prometheus and Grafana are.
const observe = "../../../loadtest/observe"

// Every metric, label and value that a dashboard or a rule names is one that a shop has, before anything has happened.
func TestDashboards_NameExistingMetrics(t *testing.T) {
	have := samples{}
	for _, ids := range []string{"snowflake", "leaf"} {
		opts := defaults(t)
		opts.IDs.IDs = ids
		shop := open(t, opts)
		newBuyer(t, fast, shop.URL(), 1, "user").place("1").mustBe(t, "not-found")
		have.add(scrape(t, shop.URL()))
	}
	have.add(`up{job="shop",instance="a"} 1` + "\n" + `ALERTS{alertname="x",alertstate="firing",instance="a"} 1`) // Prometheus's own
	expressions := append(ofDashboards(t), ofRules(t)...)
	if len(expressions) < 50 {
		t.Fatalf("found only %d expressions", len(expressions))
	}
	for _, e := range expressions {
		for _, complaint := range have.check(e) {
			t.Errorf("%s: %s", e, complaint)
		}
	}
	for _, planted := range []string{
		`rate(seckill_order_total[5m])`, `seckill_orders_total{result="placed"}`, `seckill_orders_total{outcome="bought"}`,
		`sum by (voucher) (seckill_orders_total)`, `seckill_orders_total{outcome=~"placed|bought"}`,
	} {
		if len(have.check(planted)) == 0 {
			t.Errorf("nothing is found wrong with %s", planted)
		}
	}
}

// samples are what a shop tells Prometheus: metric → label → its values.
type samples map[string]map[string][]string

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+\s*$`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
)

func (s samples) add(text string) {
	for line := range strings.Lines(text) {
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if s[m[1]] == nil { // the last three come with the scrape
			s[m[1]] = map[string][]string{"job": nil, "instance": nil, "le": nil}
		}
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			s[m[1]][label[1]] = append(s[m[1]][label[1]], label[3])
		}
	}
}

// The parts of PromQL that are to be told apart: what groups by labels, what selects by them, and names.
var (
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	selector = regexp.MustCompile(`\b([a-zA-Z_:][\w:]*)\s*(?:\{([^}]*)\})?\s*(\(?)`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	keywords = strings.Fields("and or unless bool offset sum max min count avg")
)

// check returns what is wrong with an expression.
func (s samples) check(expression string) (complaints []string) {
	rest := ranges.ReplaceAllString(expression, "")
	labels := map[string]bool{}
	for _, g := range grouping.FindAllStringSubmatch(rest, -1) {
		for _, label := range strings.FieldsFunc(g[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			labels[label] = true
		}
	}
	rest = grouping.ReplaceAllString(rest, " ")
	for _, m := range selector.FindAllStringSubmatch(rest, -1) {
		name, selects, calls := m[1], m[2], m[3] != ""
		if calls || slices.Contains(keywords, name) {
			continue
		}
		known := s[name]
		if known == nil {
			complaints = append(complaints, "no shop has the metric "+name)
			continue
		}
		for _, label := range matcher.FindAllStringSubmatch(selects, -1) {
			complaints = append(complaints, checkLabel(name, known, label[1], label[2], label[3])...)
		}
		for label := range labels {
			if _, ok := known[label]; !ok {
				complaints = append(complaints, name+" has no label "+label)
			}
		}
	}
	return complaints
}

func checkLabel(name string, known map[string][]string, label, operator, value string) (complaints []string) {
	values, ok := known[label]
	switch {
	case !ok:
		return []string{name + " has no label " + label}
	case len(values) == 0 || strings.HasPrefix(value, "$"):
		return nil
	}
	alternatives := []string{value}
	if operator == "=~" || operator == "!~" {
		alternatives = strings.Split(value, "|")
	}
	for _, a := range alternatives {
		if !slices.ContainsFunc(values, regexp.MustCompile("^(?:"+a+")$").MatchString) {
			complaints = append(complaints, name+" has no "+label+" like "+a)
		}
	}
	return complaints
}

// ofDashboards collects every query: of panels, of annotations, and of variables.
func ofDashboards(t *testing.T) (expressions []string) {
	t.Helper()
	files, err := filepath.Glob(observe + "/grafana/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboard: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		expressions = append(expressions, queries(document)...)
	}
	return expressions
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

func queries(document any) (found []string) {
	switch d := document.(type) {
	case []any:
		for _, element := range d {
			found = append(found, queries(element)...)
		}
	case map[string]any:
		for name, element := range d {
			text, isText := element.(string)
			switch {
			case name == "expr" && isText:
				found = append(found, text)
			case name == "definition" && isText && labelValues.MatchString(text):
				found = append(found, labelValues.ReplaceAllString(text, "count by ($2) ($1)"))
			default:
				found = append(found, queries(element)...)
			}
		}
	}
	return found
}

var (
	ruleExpr  = regexp.MustCompile(`(?m)^ +expr: (?:\|\n((?: {10,}.*\n)+)|(.*))`)
	ruleAlert = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)
)

// ofRules collects the condition of every alert, each of which promtool has to be told an example of.
func ofRules(t *testing.T) (expressions []string) {
	t.Helper()
	text, err := os.ReadFile(observe + "/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile(observe + "/rules_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ruleExpr.FindAllStringSubmatch(string(text), -1) {
		expressions = append(expressions, m[1]+m[2])
	}
	alerts := ruleAlert.FindAllStringSubmatch(string(text), -1)
	if len(alerts) != len(expressions) {
		t.Errorf("%d alerts with %d conditions", len(alerts), len(expressions))
	}
	for _, a := range alerts {
		if !strings.Contains(string(examples), "- name: "+a[1]+"\n") || !strings.Contains(string(examples), "alertname: "+a[1]+"}") {
			t.Errorf("rules_test.yml does not show %s going off, and not going off", a[1])
		}
	}
	return expressions
}

// Prometheus itself takes the files, and its rules do what rules_test.yml says.
func TestRules_PrometheusAccepts(t *testing.T) {
	const prometheus = "prom/prometheus:v3.5.3" // as in docker-compose.yml
	if err := exec.Command("docker", "image", "inspect", prometheus).Run(); err != nil {
		if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
			t.Fatalf("the image %s is not here, and SECKILL_TEST_REQUIRED=1 demands it", prometheus)
		}
		t.Skipf("the image %s is not here", prometheus)
	}
	for name, arguments := range map[string][]string{
		"config": {"check", "config", "/observe/prometheus.yml"},
		"rules":  {"test", "rules", "/observe/rules_test.yml"},
	} {
		t.Run(name, func(t *testing.T) {
			docker := func(args ...string) string {
				out, err := exec.Command("docker", args...).CombinedOutput()
				if err != nil {
					t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				return strings.TrimSpace(string(out))
			}
			id := docker(append([]string{"create", "--network=none", "--entrypoint=promtool", prometheus}, arguments...)...)
			defer docker("rm", "--force", "--volumes", id)
			docker("cp", observe, id+":/observe")
			t.Log(docker("start", "--attach", id))
		})
	}
}
