// Package migrations holds the versioned schema of the shop, one folder for each kind of database, embedded in the program.
// A committed migration is never edited: databases that have applied it would not see the change. Add a new one instead.
package migrations

import "embed"

// FS holds goose migrations in the folders "mysql" (also for MariaDB and TiDB) and "sqlite".
//
//go:embed mysql/*.sql sqlite/*.sql
var FS embed.FS
