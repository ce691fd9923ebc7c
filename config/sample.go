package config

import _ "embed"

//go:embed sample.toml
var sample string

// Sample is a commented queues.toml to start from: every key with its default, and one worker. It is sound
// as it stands once DATABASE_URL is set.
func Sample() string { return sample }
