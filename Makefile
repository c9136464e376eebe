# Each variant has its own recipe; `make help` lists them. Needs Go, gcc and make; what a target needs beyond that, it names.

include cross/targets.mk

GO      = go
WADS    = /usr/share/games/doom/freedoom1.wad,/usr/share/games/doom/freedoom2.wad
JSON    = -json -wad $(WADS)
ARGS    =
PKGS    = ./...
FUZZ    = 10s
SOAK    = 2m
# What the memory of a sanitizer run may show up as: a leak check of C at exit, natively.
export ASAN_OPTIONS = detect_leaks=1

.DEFAULT_GOAL = help
.PHONY: help run test race asan memdebug memtrace bindings misuse test-c cover bench fuzz soak cross cross-test deps deps-cross freedoom plan lint check clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /|/' | awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

run: build/frogpond ## the game server, over Freedoom's levels if they are installed; ARGS='-json -ticks 35' passes arguments
	@./build/frogpond $(ARGS)

test: ## the tests, as a user would run them
	$(GO) test $(PKGS)

race: ## the tests with the race detector, which sees accesses inside arenas
	$(GO) test -race $(PKGS)

asan: ## the tests with AddressSanitizer: what is not allocated is poisoned
	$(GO) test -asan $(PKGS)

memdebug: ## the tests with fills of what is fresh and what is dead
	$(GO) test -tags memdebug $(PKGS)

memtrace: ## the tests with a hook in each request: FailEach also has each refused once
	$(GO) test -tags memtrace ./arena ./scope ./budget/... ./tests/frogpond ./tests/conformance

bindings: ## the tests with each hit going through the C bindings
	$(GO) test -tags upfront_cgo $(PKGS)

misuse: ## the misuse table, proved: a program for each misuse, run in each build
	$(GO) test ./tests/misuse
	@$(GO) run ./tests/misuse

test-c: ## the C core without Go: gcc, clang, C++, sanitizers, valgrind, branch coverage
	sh tests/c/run.sh build/c

cover: ## coverage: Go statements for each package, then branches of the C core
	$(GO) test -cover ./arena ./scope ./budget/... ./platform ./tests/frogpond
	sh tests/c/run.sh build/c coverage

# Three times the same program: as it is, with each hit through the bindings, and with Go's arena experiment. The first drives the others.
BENCH = $(CURDIR)/build/bench
bench: ## what memory costs here, in C, on the Go heap and with other libraries: build/bench.md, .csv, .svg; ARGS='-works A,C' does a part
	@mkdir -p build
	@cd tests/bench && $(GO) build -o $(BENCH) . && $(GO) build -tags upfront_cgo -o $(BENCH)-cgo . && \
	  GOEXPERIMENT=arenas $(GO) build -o $(BENCH)-arenas . && $(BENCH) -out $(CURDIR)/build $(ARGS)

fuzz: ## every fuzz target for FUZZ=10s
	@mkdir -p build/fuzz
	@for p in $$(grep -l '^func Fuzz' */*_test.go */*/*_test.go | xargs dirname | sort -u); do \
	  t=$(CURDIR)/build/fuzz/$$(basename $$p).test; $(GO) test -c -fuzz . -o $$t ./$$p || exit 1; \
	  for f in $$($$t -test.list '^Fuzz'); do \
	    echo "== $$p $$f"; \
	    (cd $$p && $$t -test.run '^$$' -test.fuzz "^$$f\$$" -test.fuzztime $(FUZZ) -test.fuzzcachedir $(CURDIR)/build/fuzz/$$p) || exit 1; \
	  done; \
	done

soak: ## the long forms: random tests for SOAK=2m each, each request of frogpond refused, the release build's rounds in every build
	UPFRONT_SOAK=$(SOAK) $(GO) test -timeout 1h -run '^(TestSoak|TestModelOfAHouse)$$' -v ./budget
	UPFRONT_SOAK=$(SOAK) $(GO) test -timeout 1h -tags memtrace -run '^TestEachAllocationFails$$' -v ./tests/frogpond
	for b in -race -asan "-tags memdebug" "-tags upfront_cgo"; do \
	  UPFRONT_SOAK=1s $(GO) test -timeout 1h $$b ./arena ./scope ./tests/conformance ./tests/frogpond || exit 1; \
	done

build/frogpond: FORCE
	@mkdir -p build
	@$(GO) build -o $@ ./tests/frogpond
FORCE:

# frogpond over all maps of Freedoom in every build and with 1, 2 and 4 workers: each report whole, and all the same.
freedoom: build/frogpond ## all 68 maps of Freedoom in every build; the hashes must agree (needs the package freedoom)
	@mkdir -p build/json
	@$(GO) build -race -o build/frogpond-race ./tests/frogpond
	@$(GO) build -asan -o build/frogpond-asan ./tests/frogpond
	@$(GO) build -tags upfront_cgo -o build/frogpond-bindings ./tests/frogpond
	@$(GO) build -tags memdebug -o build/frogpond-memdebug ./tests/frogpond
	@for w in 1 2 4; do echo "frogpond, release, $$w workers"; build/frogpond $(JSON) -workers $$w > build/json/release-$$w.json || exit 1; done
	@for b in bindings memdebug asan race; do echo "frogpond, $$b"; build/frogpond-$$b $(JSON) -workers 2 > build/json/$$b.json || exit 1; done
	@$(GO) run ./tests/same -quiet build/json/release-1.json $$(ls build/json/*.json | grep -v release-1)

# frogpond's plan is what it needed of a wide one, and a tenth more: init with all its files, every map with 4 workers, and a
# map for 400000 ticks, whose durations the region systems holds.
POND = tests/frogpond
RECORD = build/frogpond -json -plan $(POND)/testdata/wide.json
plan: build/frogpond ## frogpond's plan.json anew: recorded peaks + 10 % (needs the package freedoom)
	$(RECORD) -wad $(WADS),builtin -ticks 3500 -workers 4 -report $(POND)/testdata/recorded/freedoom.json > build/record.json
	$(RECORD) -wad builtin -maps MAP01 -ticks 400000 -report $(POND)/testdata/recorded/long.json > build/record.json
	$(GO) run ./tests/suggest -headroom 10 -name handheld $(POND)/testdata/recorded/*.json > build/plan.json
	cp build/plan.json $(POND)/plan.json

cross: $(TARGETS:%=cross-%) ## library, tests and frogpond for every target of cross/targets.mk
cross-test: $(TARGETS:%=cross-test-%) ## runs what cross built under qemu-user, and compares three maps' hashes with this machine's

TESTED = arena_c arena scope budget platform tests/frogpond tests/conformance

cross-%:
	@command -v $($*.cc) > /dev/null || { echo "cross: $($*.cc) is missing; make deps-cross installs $($*.apt)"; exit 1; }
	@mkdir -p build/$*
	$($*.env) $(GO) vet ./...
	$($*.env) $(GO) build -o build/$*/ ./tests/frogpond
	for p in $(TESTED); do $($*.env) $(GO) test -c -o build/$*/$$(echo $$p | tr / -).test ./$$p || exit 1; done

cross-test-%: cross-% build/frogpond
	for p in $(TESTED); do t=$(CURDIR)/build/$*/$$(echo $$p | tr / -).test; [ ! -e $$t ] || (cd $$p && echo "$* $$p" && $($*.run) $$t -test.short) || exit 1; done
	@mkdir -p build/json-$*
	if [ -e $(firstword $(subst $(comma), ,$(WADS))) ]; then \
	  build/frogpond $(JSON) -maps E1M1,E1M3,MAP07 > build/json-$*/here.json && \
	  $($*.run) build/$*/frogpond $(JSON) -maps E1M1,E1M3,MAP07 > build/json-$*/there.json && \
	  $(GO) run ./tests/same build/json-$*/here.json build/json-$*/there.json; fi
comma = ,

deps: deps-cross ## installs all that check needs beyond Go, gcc and make (Debian, root)
	apt-get install -y -qq clang valgrind freedoom liblua5.4-dev pkg-config strace

deps-cross: ## installs the cross compilers and qemu-user (Debian, root)
	apt-get update -qq
	apt-get install -y -qq $(foreach t,$(TARGETS),$($(t).apt))

# Without its tests, which are not run there: with them 130 packages more would be compiled for each system.
vet-platform = sh -c '$(GO) vet $$($(GO) list -f "{{range .GoFiles}}platform/{{.}} {{end}}" ./platform)'

lint: ## format, vet in every build and for every system, and the scripts' syntax
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) mod verify > /dev/null
	$(GO) mod tidy -diff
	$(GO) vet ./...
	cd tests/bench && $(GO) vet ./... && $(GO) test -short ./...
	$(GO) vet -tags upfront_cgo ./arena_c ./arena ./scope ./budget/...
	$(GO) vet -tags memdebug ./arena_c ./arena ./scope ./budget/...
	$(GO) vet -tags memtrace ./arena_c ./arena ./scope ./budget/...
	GOOS=windows CGO_ENABLED=0 $(vet-platform)
	GOOS=darwin CGO_ENABLED=0 $(vet-platform)
	sh -n tests/c/run.sh
	bash -n .ci/run

check: ## what a change must pass
	$(MAKE) test
	$(MAKE) lint
	$(MAKE) test-c
	$(MAKE) race
	$(MAKE) asan
	$(MAKE) memdebug
	$(MAKE) memtrace
	$(MAKE) bindings
	$(MAKE) misuse
	$(MAKE) fuzz FUZZ=5s
	$(MAKE) freedoom
	$(MAKE) cross-test

clean: ## removes what was built here
	rm -rf build
