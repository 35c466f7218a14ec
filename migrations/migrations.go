// Package migrations holds the versioned schema of the shop, one folder a database, embedded in the program.
package migrations

import "embed"

// FS holds goose migrations in the folders "mysql" (MySQL and MariaDB) and "sqlite".
//
//go:embed mysql/*.sql sqlite/*.sql
var FS embed.FS
