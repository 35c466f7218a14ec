package migrations_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"seckill/migrations"
)

// committed holds the SHA-256 of every committed migration.
var committed = map[string]string{
	"mysql/00001_shop.sql":          "5d690bd565728e3100306b5baeb4e32403965974310b99b5421b606a5cd71fb8",
	"mysql/00002_ids.sql":           "64d22b037a5dd46eb24f0307c042a4027789f81c56a6f22226345937252c1b5c",
	"mysql/00003_outbox.sql":        "046e521b4d6214118165423855c9d0c67438a8fc8768c18deaf3d2e21242f92a",
	"mysql/00004_instance.sql":      "c301536904bd710b52a84bd9255b4fb81cc7cf9e569143d004b8b47f23140bd9",
	"mysql/00005_trace.sql":         "f30cd96beba533760f07f29baee77ae2aa5faf728e196eace35c5c2d1629aa6e",
	"mysql/00006_payload_text.sql":  "591a52973b2f875265e9a6906690dafb7290470f68d0e586232cb5bcb17c289b",
	"sqlite/00001_shop.sql":         "1c7f45049b82927a4b60f8d030766b6af8b41be63e49f0eeef677f12a5a48976",
	"sqlite/00002_ids.sql":          "f84586edb9f7a08cfb139000ce971b34481763c0779940231d711c2155e6aadb",
	"sqlite/00003_outbox.sql":       "49db06e0c721dcdbe23c4bdf8f132ba1941670000318f41b2fae4a94f3af38fa",
	"sqlite/00004_instance.sql":     "b20ed7ffa9650e0d2c6dede7d6e992be0095821700dedf29b12199dd3dfdbb20",
	"sqlite/00005_trace.sql":        "f6f49e6cc6d8d5d969cc88be696981ba2aaef0459b14dcabacbf6a1c01cf9ccd",
	"sqlite/00006_payload_text.sql": "e24a4cc25d35b94bdd56e7ef9b2621eb0bbcff30d9727e3ca54d3624279de178",
}

func TestMigrations_CommittedAreNeverEdited(t *testing.T) {
	files := migrationFiles(t)
	for _, name := range files {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		got := hex.EncodeToString(sum[:])
		switch want, known := committed[name]; {
		case !known:
			t.Errorf("%s is new: pin it with the line\n\t%q: %q,", name, name, got)
		case got != want:
			t.Errorf("%s was edited. Databases that have applied it would not see the change: restore the file, and put the change into a new migration", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(committed)) {
		if !slices.Contains(files, name) {
			t.Errorf("%s was removed. Databases that have applied it could not be migrated any more: restore the file", name)
		}
	}
}

func TestMigrations_BothFoldersHaveTheSameNames(t *testing.T) {
	names := map[string][]string{}
	for _, name := range migrationFiles(t) {
		names[path.Dir(name)] = append(names[path.Dir(name)], path.Base(name))
	}
	if !slices.Equal(names["mysql"], names["sqlite"]) {
		t.Errorf("mysql has %s, sqlite has %s", strings.Join(names["mysql"], " "), strings.Join(names["sqlite"], " "))
	}
}

// migrationFiles lists all migrations in the order of their names.
func migrationFiles(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(migrations.FS, "*/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations: %v, %v", files, err)
	}
	return files
}
