# The targets of everyday work. `make` alone lists them.

.PHONY: help build run test quick lint vuln bench smoke chaos rates deps clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./queuekeeper, one static binary
	CGO_ENABLED=0 go build -o queuekeeper ./cmd/queuekeeper

run: build ## run queues.toml with sample jobs on a private Postgres; Ctrl-C ends it
	./queuekeeper dev --sample 10

test: ## run all tests with the race detector
	go test -race ./...

quick: ## run all tests without the race detector
	go test ./...

lint: ## check format, vet and staticcheck; no network
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt's format:" $$unformatted; exit 1; }
	go vet ./...
	go tool staticcheck ./...

vuln: ## look for known vulnerabilities; needs the internet
	go run golang.org/x/vuln/cmd/govulncheck@latest ./...

bench: ## measure, on a private Postgres, against this machine's own limits
	CGO_ENABLED=0 go run ./internal/bench

smoke: ## run the real thing for a minute and check its promises
	CGO_ENABLED=0 go run ./internal/smoke

ROUNDS ?= 20
chaos: ## kill, stop and cut off what runs at random, ROUNDS=20 times; SEED=n does it again
	CGO_ENABLED=0 go run ./internal/chaos -rounds $(ROUNDS) $(if $(SEED),-seed $(SEED))

rates: ## measure in eight minutes how exact the limits are; SHORT=1 in one; WRITE=docs/rates.md keeps it
	CGO_ENABLED=0 go run ./internal/rates $(if $(SHORT),-short) $(if $(WRITE),-write $(WRITE))

deps: ## install what building and testing needs, or say the command to type
	@scripts/deps.sh

clean: ## remove what was built
	rm -rf queuekeeper bin
