# What one types here. `make help` lists it.

CARGO ?= cargo
# Passed on to the program that a target runs: make demo ARGS="--for 20s"
ARGS ?=

.PHONY: help web demo cluster-demo load test full-disk-test api-test contract-test python-test python-check gpu-test check bench bench-all micro soak fuzz ptx

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-17s %s\n", $$1, $$2 }'

# cargo builds the program again when this has changed, and does without where it is not there.
PAGES := clients/web/embed/pages/dist/index.html
PAGES_SOURCES := $(shell find clients/web clients/typescript/src -type f -not -path '*/node_modules/*' -not -path '*/embed/*' -not -path '*/tests/*')
NODE_IS_ENOUGH := const [major, minor] = process.versions.node.split("."); process.exit(major > 20 || (major == 20 && minor >= 19) ? 0 : 1)

web: ## Build the console and the phone page, which the program carries; needs Node 20.19 or newer, and the network once
	@if command -v npm > /dev/null && node --eval '$(NODE_IS_ENOUGH)'; then $(MAKE) --silent --no-print-directory $(PAGES); \
		else echo "the console and the phone page are not built: that needs Node 20.19 or newer with npm"; fi

$(PAGES): clients/web/node_modules/.installed $(PAGES_SOURCES)
	cd clients/web && npm run build
	@touch $@

# Some tools for development name a newer Node than they need. Errors are shown; warnings of that kind are not.
%/node_modules/.installed: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

demo: web ## Start a broker and replay real taxis against it; ARGS="--for 20s --speed 60"
	$(CARGO) run --locked --release --package broker --bin nearcast -- demo $(ARGS)

cluster-demo: ## Kill a broker and a NATS server of a cluster under the taxis, and check every delivery; needs python3, and the network once; ARGS="--for 15s"
	$(CARGO) build --locked --release --package broker --bin nearcast
	ops/cluster-demo/run $(ARGS)

# Most tests wait for a broker more than they compute.
TEST_THREADS := $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))

test: web ## Run every test
	@PATH=$$PATH:/usr/sbin; for tool in curl jq pgrep script swipl mosquitto nats-server; do command -v $$tool > /dev/null || missing=y; done; [ -z "$$missing" ] || \
		{ apt-get update --quiet=2 && apt-get install --yes --quiet=2 --no-install-recommends \
			bsdutils curl jq procps swi-prolog-nox mosquitto nats-server; } # what the documents have one type, and the peers of rules and of the load
	RUST_TEST_THREADS=$${RUST_TEST_THREADS:-$(TEST_THREADS)} $(CARGO) test --workspace --locked
	@echo "The clients' tests: two programs at a time, each of which reports when it is done; some ten minutes"
	$(MAKE) --jobs 2 --output-sync=target web-test typescript-test python-test contract-test api-test

full-disk-test: web ## Run the broker on disks that are full; needs root, for it mounts disks of 40 and 120 MB
	$(CARGO) test --locked --package broker --test it durable_faults::full -- --ignored --nocapture

# With an example, which may use what tests use, cargo builds dependencies with the features that `cargo test --workspace` builds them with:
# after that nothing is built, while `--package broker` would build forty crates and the broker once more.
.PHONY: program
program:
	$(CARGO) build --locked --workspace --bin nearcast --example first

api-test: program ## Hold answers against the OpenAPI document, and make clients of it; needs python3, node, and the network once
	broker/tests/openapi/run target/debug/nearcast target/openapi

contract-test: ## Hold the AsyncAPI document and the frames of the vectors against each other; needs node, and the network once
	clients/contract/check/run

python-test: program ## Run the Python client's tests against the broker; needs python3, and the network once
	clients/python/test tests

python-check: ## Formatting, lints and types of the Python client
	clients/python/test check

# A run under a sanitizer is small. racecheck, which watches what a block shares, would take minutes for the random worlds.
SANITIZERS := memcheck racecheck initcheck synccheck
gpu-test: ## Run the GPU engines on this machine's CUDA devices: 10^8 pairs each, then compute-sanitizer
	NEARCAST_GPU_TESTS=1 $(CARGO) test --locked --release --package device --package matcher-gpu --package checks-gpu --package rules-gpu --package groups-gpu --package routes-gpu --package traffic-gpu -- --nocapture
	@for tool in $(SANITIZERS); do \
		echo "== $$tool"; \
		worlds=engines::cuda_devices; [ $$tool = racecheck ] && worlds=; \
		NEARCAST_GPU_TESTS=1 NEARCAST_PAIRS=2000 \
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="compute-sanitizer --tool $$tool --error-exitcode 1" \
		$(CARGO) test --locked --release --package matcher-gpu --test it -- --test-threads 1 every_kernel more_answers $$worlds \
		&& NEARCAST_GPU_TESTS=1 NEARCAST_CHECKS_RUNS=24 \
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="compute-sanitizer --tool $$tool --error-exitcode 1" \
		$(CARGO) test --locked --release --package checks-gpu --test it -- --test-threads 1 random_formulas batches_of_random \
		&& NEARCAST_GPU_TESTS=1 NEARCAST_RULES_RUNS=8 NEARCAST_GROUPS_RUNS=20 NEARCAST_ROUTES_RUNS=1 \
		CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="compute-sanitizer --tool $$tool --error-exitcode 1" \
		$(CARGO) test --locked --release --package rules-gpu --package groups-gpu --package routes-gpu --package traffic-gpu --test it -- --test-threads 1 \
			random_confluent random_networks a_value_that routes_on_many sums_that states_are_equal_on_made \
		|| exit 1; \
	done

check: ## Formatting, lints and documentation, warnings refused
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --document-private-items --locked
	$(MAKE) python-check typescript-check web-check

.PHONY: dist dist-test
dist: ## Make what a release publishes, in target/dist: npm, wheel, sdist, crates, archive, image, and their sums
	ops/dist/make

dist-test: ## Install each package of target/dist in an empty folder, and run its sample against the broker of the archive
	ops/dist/try

load: ## What a broker carries on this machine; ARGS="run city --html city.html", ARGS="find-capacity field"
	$(CARGO) build --locked --release --package broker --package nearcast-load
	target/release/nearcast-load $(or $(ARGS),run city)

bench: ## The paper's tables and figures, two minutes, in target/paper; ARGS="--full --out FOLDER" for all sizes
	$(CARGO) run --locked --release --package benches --bin paper -- $(or $(ARGS),--quick)

bench-all: ## Every bench program, many minutes; ARGS="--quick" for a look
	$(CARGO) build --locked --release --package broker --package benches
	@for source in benches/src/bin/*.rs; do \
		program=$$(basename $$source .rs); \
		echo "== $$program"; \
		$(CARGO) run --locked --release --quiet --package benches --bin $$program -- $(ARGS) || exit 1; \
	done

micro: ## Run the micro-benchmarks, a minute or two; ARGS="condition" for those with that in their name
	$(CARGO) bench --locked --package benches --bench '*' -- --min-time 1 $(ARGS)

soak: ## The long form of the randomised tests, hours: 10^9 event and filter pairs, 1,000 kills, 200 power losses, every bit, a storm of 5,000, 10,000 simulated clusters
	NEARCAST_SOAK=1 $(CARGO) test --workspace --locked --release

# What is made up goes to fuzz/found, and what fails to fuzz/artifacts; seeds that the tests run are in fuzz/corpus.
FOR ?= 60s
TARGET ?= $(sort $(notdir $(wildcard fuzz/corpus/*)))
fuzz: ## Feed readers with what nobody would send, a minute each; FOR=1h TARGET="feature frames"; needs nightly Rust and cargo-fuzz
	@for target in $(TARGET); do \
		echo "== $$target"; \
		mkdir -p fuzz/found/$$target; \
		$(CARGO) +nightly fuzz run --no-cfg-fuzzing $$target fuzz/found/$$target fuzz/corpus/$$target -- \
			-max_total_time=$$(($(subst h,*3600,$(subst m,*60,$(FOR:s=))))) -dict=fuzz/words.dict -rss_limit_mb=2048 -timeout=20 || exit 1; \
	done

.PHONY: chromium firefox typescript-test typescript-check web-test web-check

typescript-test: program clients/typescript/node_modules/.installed chromium ## Test the TypeScript client against a started broker; needs Node, Chromium, and the network once
	cd clients/typescript && npm test

typescript-check: clients/typescript/node_modules/.installed ## Formatting, lints and types of the TypeScript client
	cd clients/typescript && npm run check

web-test: web program chromium firefox ## Test the console and the phone page against a started broker; needs Node, Chromium, Firefox, and the network once
	cd clients/web && npm test

web-check: clients/web/node_modules/.installed ## Formatting, lints and types of the console and the phone page
	cd clients/web && npm run check

# The pages' tests take its shell where there is one, which has less to do.
chromium:
	@command -v "$${CHROMIUM:-chromium}" >/dev/null || { apt-get update --quiet=2 && apt-get install --yes --quiet=2 --no-install-recommends chromium; }
	@command -v chromium-headless-shell >/dev/null || apt-get install --yes --quiet=2 --no-install-recommends chromium-headless-shell || true

firefox:
	@command -v "$${FIREFOX:-firefox-esr}" >/dev/null || { apt-get update --quiet=2 && apt-get install --yes --quiet=2 --no-install-recommends firefox-esr; }

ptx: ## Compile the CUDA kernels that changed; fetches the compiler the first time
	kernels/nvcc/make-ptx
