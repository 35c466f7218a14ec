package cli

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// Version returns the module's version, and the commit if the program was built in a checkout.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			version += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return version
}

// Machine describes the computer that figures were measured on. Figures without it mean nothing.
type Machine struct {
	CPU    string `json:"cpu"`   // empty if the system does not say
	Cores  int    `json:"cores"` // that the process may use
	System string `json:"system"`
	Go     string `json:"go"`
	Build  string `json:"build"`
}

// ThisMachine describes the computer that the program runs on.
func ThisMachine() Machine {
	return Machine{
		CPU: cpuModel(), Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Build: Version(),
	}
}

func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Describe returns the machine in one line, followed by the servers that were measured.
func (m Machine) Describe(servers ...string) string {
	parts := append([]string{m.CPU, strconv.Itoa(m.Cores) + " cores", m.System, m.Go, "seckill " + m.Build}, servers...)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
