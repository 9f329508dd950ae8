# `make help` lists what there is.

CARGO ?= cargo
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: help build up ui pages test test-ui e2e pictures tools bench sizing soak soak-processes lint fmt

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: pages ## release binary at target/release/baton, with the web pages in it where npm is there to build them
	$(CARGO) build --release --locked -p baton

up: build ## a control plane and three simulated clusters on this machine
	target/release/baton up --repo https://git.example.com/fleet/config.git=examples/repo \
		--repo https://github.com/christianh814/gitops-examples=examples/pricelist \
		--repo https://github.com/example/app=examples/phases/app $(ARGS)

# The binary embeds ui/dist as it is when it is built. Cargo cannot watch for a folder that is not there yet, so what makes
# it touches the script that looks for it.
WITH_NODE := PATH="$(CURDIR)/target/tools/bin:$$PATH"
PAGES := $(shell find ui/src ui/public -type f) ui/index.html ui/vite.config.ts ui/package-lock.json

ui: ui/dist/index.html ## the web pages, into ui/dist; without Node, `make tools` fetches it

ui/dist/index.html: $(PAGES)
	cd ui && export $(WITH_NODE) && npm ci --no-audit --no-fund && npm run build
	touch $@ crates/baton/build.rs

pages:
	@if $(WITH_NODE) command -v npm >/dev/null; then $(MAKE) --no-print-directory ui; \
	else echo "No npm here: the binary says how to build the web pages instead of showing them."; fi

test: lint tools test-ui ## format, lints and every test
	$(CARGO) test --workspace --locked --no-fail-fast
	cd ui && export $(WITH_NODE) && BATON=../target/debug/baton ./e2e/real.sh

test-ui: tools ## types, tests and bundle of the web UI, and its pages in a real browser
	$(MAKE) --no-print-directory ui
	cd ui && export $(WITH_NODE) && npm run check && npm test && npm run e2e

e2e: ui build ## the same pages in a real browser, against a real fleet
	cd ui && export $(WITH_NODE) && ./e2e/real.sh

pictures: ui build ## the pictures in docs/img, from a real fleet
	cd ui && export $(WITH_NODE) && npm run pictures

tools: ## the helm and the Kustomize that tests compare with, and Node for the web UI, into target/tools where the machine has none
	.ci/tools

bench: ## what the embedded API does per second, and in how much memory; how fast templates render and rights are judged; what passes cost; how soon a page shows 1,000 cards
	$(CARGO) bench --locked -p baton --bench api -- --bench
	$(CARGO) bench --locked -p baton-render --bench render -- --bench
	$(CARGO) bench --locked -p baton-template --bench execute -- --bench
	$(CARGO) bench --locked -p baton-rbac --bench decisions -- --bench
	$(CARGO) bench --locked -p baton-server --bench people -- --bench
	$(CARGO) bench --locked -p baton-rollout --bench machine -- --bench
	$(CARGO) bench --locked -p baton-controllers --bench appset -- --bench
	$(CARGO) bench --locked -p baton-controllers --bench applications -- --bench
	$(CARGO) bench --locked -p baton-controllers --bench rollouts -- --bench
	$(CARGO) bench --locked -p baton-controllers --bench phases -- --bench
	cd ui && export $(WITH_NODE) && npm ci --no-audit --no-fund && npm run build && npm run measure

sizing: ## what fleets of APPLICATIONS=n,m,… cost: time to roll out, and CPU, memory and requests of each controller
	BATON_SIZING_APPLICATIONS=$(APPLICATIONS) $(CARGO) bench --locked -p baton --bench sizing -- --bench

# The worlds run in the place of the shell, so that Ctrl-C reaches them, and nothing goes on behind the prompt.
soak: ## SEEDS=n worlds of the simulator from FIRST_SEED=m on
	@worlds=$$($(CARGO) test --profile soak --locked -p baton-sim --test seeds --no-run --message-format=json \
		| sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1) && [ -n "$$worlds" ] && \
		export BATON_SIM_SEEDS=$(or $(SEEDS),1000) BATON_SIM_FIRST_SEED=$(or $(FIRST_SEED),1) && \
		exec "$$worlds" no_seed --nocapture

soak-processes: ## COMMITS=n commits rolled out by real processes behind lagging proxies, killed at random
	BATON_LAG_COMMITS=$(or $(COMMITS),300) BATON_LAG_DELAY=$(or $(DELAY),5s) \
		$(CARGO) test --profile processes --locked -p baton --test lag -- order --nocapture

lint: ## format and lints, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format the code
	$(CARGO) fmt --all
