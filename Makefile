# Each variant has its own recipe; `make help` lists them. Needs Go, gcc and make; what a target needs beyond that, it names.

include cross/targets.mk cross/devices.mk

GO      = go
WADS    = /usr/share/games/doom/freedoom1.wad,/usr/share/games/doom/freedoom2.wad
ARGS    =
# Every package. go test says of each how it ended, in this order, so that who waits sees which one runs: the library's are quick, and
# of tests/ the quickest comes first.
PKGS    = $$($(GO) list ./... | awk '/\/tests(\/|$$)/ { late = $$0 " " late; next } { print } END { print late }')
FUZZ    = 10s
ONLY    = Fuzz
TIME    = 1m
# -short, in check: the long forms of the tests in builds that are not for play are soak's.
FORM    =
# The next release of Go, whose compiler inlines by rules of its own; the go command downloads it.
NEXT_GO = go1.27.4
STATIC  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
# What the memory of a sanitizer run may show up as: a leak check of C at exit, natively.
export ASAN_OPTIONS = detect_leaks=1

.DEFAULT_GOAL = help
.PHONY: help run serve bots test race asan checked bindings collector misuse test-c cover clients clients-bench page-test base growth pictures tools bench bench-gate fuzz model schedules fleet arm64 cross cross-test cross-save \
  dist install deps deps-cross flow-check flow-draw freedoom plan lint static check soak readme clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /|/' | awk -F'|' '{printf "  make %-13s %s\n", $$1, $$2}'

run: build/frogpond ## frogpond plays Freedoom's levels, or its own, and says how its plan held; ARGS='-v -ticks 35' passes arguments
	@./build/frogpond $(ARGS)

# Both know the same address, so that the two commands meet.
serve: build/frogpond ## frogpond as a game server, on 127.0.0.1:35035, until Ctrl-C; ARGS='-rooms 64 -addr :35035', ARGS=-h: its flags
	@./build/frogpond serve $(ARGS)
bots: build/frogpond ## players for it, 16 for a minute; ARGS='-n 128 -for 10s -loss 2 -jitter 50ms', ARGS=-h: its flags
	@./build/frogpond bots $(ARGS)

test: ## the tests, as a user would run them: go test ./..., the quick packages first
	@echo "go test ./...: first the library; tests/ starts programs in every build and plays all maps, which takes minutes, unless cached"
	@$(GO) test $(PKGS)

race: ## the tests with the race detector, which sees accesses inside arenas
	$(GO) test -race $(FORM) $(PKGS)

asan: ## the tests with AddressSanitizer: what is not allocated is poisoned
	$(GO) test -asan $(FORM) $(PKGS)

checked: ## the tests with fills, redzones, call sites, and each request refused once
	$(GO) test -tags checked $(FORM) $(PKGS)

bindings: ## the tests with each fast path going through the C bindings, as in asan and checked builds
	$(GO) test -tags upfront_cgo $(FORM) $(PKGS)

# The collector runs all the time, marks everything a second time, and overwrites what it frees: a Go value that only a budget
# pointed to is found missing.
collector: ## the tests of scope, budget and the model with GOGC=1 and the collector's own check
	GOGC=1 GODEBUG=gccheckmark=1,clobberfree=1 $(GO) test -short ./scope/... ./budget/... ./tests/model

misuse: ## the misuse table, proved: a program for each misuse, run in each build
	$(GO) test ./tests/misuse
	@$(GO) run ./tests/misuse

test-c: ## the C core without Go: gcc, C++, sanitizers, branch coverage; soak-c has clang and valgrind
	sh tests/c/run.sh build/c

cover: ## coverage: Go statements for each package, then branches of the C core
	$(GO) test -cover ./arena ./scope/... ./budget/... ./platform ./tests/frogpond/...
	sh tests/c/run.sh build/c coverage

# What puts somebody else's library into a budget, each a module of its own. SYSTEM: with Debian's SQLite, which needn't be compiled.
CLIENTS = $(patsubst %/go.mod,%,$(wildcard arena/with/*/go.mod scope/with/*/go.mod tests/frogpond/mods/go.mod))
SYSTEM  = -tags libsqlite3
clients: ## wasm modules, SQLite, Lua and Arrow in budgets: their tests in short form, and build/clients.json
	@$(GO) run ./tests/clients -out build/clients.json
clients-bench: ## what each costs beside its own default: the tables of their pages, anew
	@$(GO) run ./tests/clients -readme -out build/clients.json

# Three times the same program: as it is, with each fast path through the bindings, and with Go's arena experiment. The first drives the others.
BENCH = $(CURDIR)/build/bench
bench: ## what memory costs here, in C, on the Go heap and with another library: build/bench.md; ARGS='-works A,C' does a part
	@mkdir -p build
	@cd tests/bench && $(GO) build -o $(BENCH) . && $(GO) build -tags upfront_cgo -o $(BENCH)-cgo . && \
	  GOEXPERIMENT=arenas $(GO) build -o $(BENCH)-arenas . && $(BENCH) -out $(CURDIR)/build $(ARGS)

bench-gate: ## holds what `make bench` measures to its targets (tests/bench/targets.go); REQUIRE_ALL=1: no row may go unjudged
	@mkdir -p build
	@cd tests/bench && $(GO) build -o $(BENCH) . && $(BENCH) -gate $(ARGS)

# A target that finds nothing may end in "context deadline exceeded", which is the fuzzer's own (golang/go#75804): it runs again.
fuzz: ## every fuzz target, or those of ONLY='Fuzz(Load|WAD)', for FUZZ=10s
	@mkdir -p build/fuzz
	@for p in $$(grep -l '^func Fuzz' */*_test.go */*/*_test.go */*/*/*_test.go $(POND)/internal/*/*_test.go | xargs dirname | sort -u); do \
	  t=$(CURDIR)/build/fuzz/$$(basename $$p).test; (cd $$p && $(GO) test -c -fuzz . -o $$t .) || exit 1; \
	  for f in $$($$t -test.list '^$(ONLY)'); do \
	    echo "== $$p $$f"; \
	    for try in 1 2 3; do \
	      (cd $$p && $$t -test.run '^$$' -test.fuzz "^$$f\$$" -test.fuzztime $(FUZZ) -test.fuzzcachedir $(CURDIR)/build/fuzz/$$p) > build/fuzz/out 2>&1 \
	        && { tail -n 2 build/fuzz/out; break; }; \
	      cat build/fuzz/out; \
	      [ $$try != 3 ] && grep -q '^ *context deadline exceeded$$' build/fuzz/out || exit 1; \
	    done; \
	  done; \
	done

model: ## random programs over scope and budget for TIME=1m in each build, beside a model that knows what must come of them
	@for b in "" -race -asan "-tags checked" "-tags upfront_cgo"; do \
	  UPFRONT_MODEL=$(TIME) $(GO) test $$b -count=1 -timeout 0 -run '^TestModel$$' ./tests/model || exit 1; done

# A module of its own, for Kubernetes' scheduler is compiled into it: minutes at first.
fleet: ## a thousand servers on nodes, placed by Kubernetes' own scheduler: by a plan's sum, and by guesses; ARGS=-h: its flags
	@cd tests/fleet && $(GO) run . $(ARGS)

schedules: ## every schedule of three goroutines and five operations on regions, beside a model, and how many they are
	$(GO) test -count=1 -v -run '^TestSchedules$$' ./tests/model/schedules

build/frogpond: FORCE
	@mkdir -p build
	@$(GO) build -o $@ ./tests/frogpond
FORCE:
flags-race     = -race
flags-asan     = -asan
flags-checked  = -tags checked
flags-bindings = -tags upfront_cgo

FREEDOOM = $(GO) test -count=1 -timeout 1h -run '^TestHashes$$' ./tests/frogpond
freedoom: build/frogpond ## every special line of all 68 maps, fired; and 350 ticks of them in each build: recorded states and memory (needs freedoom)
	build/frogpond -wad $(WADS) -sweep -ticks 0
	REQUIRE_ALL=1 $(FREEDOOM)
	REQUIRE_ALL=1 $(FREEDOOM) -race
	REQUIRE_ALL=1 $(FREEDOOM) -asan
	REQUIRE_ALL=1 $(FREEDOOM) -tags checked
	REQUIRE_ALL=1 $(FREEDOOM) -tags upfront_cgo

# frogpond's plan is what it needed of a wide one, and a tenth more: init with all its files, the largest last, as its table
# is read beside what the others left; every map with 4 workers; and a map for 400000 ticks, whose durations the region
# systems holds.
POND = tests/frogpond
RECORD = build/frogpond -json -plan $(POND)/testdata/wide.json
plan: build/frogpond ## frogpond's plan.json anew: recorded peaks + 10 % (needs the package freedoom)
	$(RECORD) -wad builtin,$(WADS) -ticks 3500 -workers 4 -report $(POND)/testdata/recorded/freedoom.json > build/record.json
	$(RECORD) -wad builtin -maps MAP01 -ticks 400000 -report $(POND)/testdata/recorded/long.json > build/record.json
	$(GO) test -count=1 -run '^TestPlanIsRecordedPeaks$$' ./$(POND) -update

# What shows others what a budget holds, each a module of its own.
READERS = budget/cmd budget/with/pprof budget/with/prometheus

# npm's axe-core is installed below build, where the screenshots are put, too.
page-test: ## the pages of a running frogpond in Chromium: figures, keyboard, contrast; screenshots in build/page (needs npm and the package chromium)
	@mkdir -p build/page && cp tests/page/package.json tests/page/package-lock.json build/page/
	@cd build/page && npm ci --ignore-scripts --no-audit --no-fund --silent
	@cd tests/page && $(GO) test -count=1 ./...

pictures: ## build/pictures: the plan, use, every byte, the inside of a level and use over time, of all maps, as SVG and as text
	@$(GO) run -tags checked ./$(POND) -ticks 105 -pictures build/pictures $(ARGS) > /dev/null
	@echo "the pictures are in build/pictures"

# The tool is a module of its own, below budget/cmd. frogpond says which events and actions it has by -vocabulary, and gives the graph
# of a map by -flow.
build/upfront: FORCE
	@mkdir -p build
	@cd budget/cmd && $(GO) build -o $(CURDIR)/$@ ./upfront

# Without the commit in it: go vet remembers what each tool found in libraries, and a commit makes no other tool.
build/upfront-vet: FORCE
	@mkdir -p build
	@cd budget/cmd && $(GO) build -buildvcs=false -o $(CURDIR)/$@ ./upfront-vet

# What frogpond takes on its own maps: the same bytes in each run, with any number of workers. ARGS='-bots 16' shows that the gate
# shuts.
ON_ITS_OWN = build/frogpond -json -wad builtin -ticks 350 $(ARGS) -report
BASE       = $(POND)/testdata/recorded/builtin.json
base: build/frogpond ## what growth compares with, anew: after a change that may grow
	@$(ON_ITS_OWN) $(BASE) > build/record.json
growth: build/frogpond build/upfront ## what frogpond takes beside what was recorded: no part, label or scope may grow by more than 3 %
	@$(ON_ITS_OWN) build/growth.json > build/record.json
	@build/upfront check build/growth.json --against $(BASE) --max-growth 3% || { echo "make base does, without ARGS"; exit 1; }

tools: build/upfront build/upfront-vet ## build/upfront: plans, reports, profiles, saves and graphs from the command line; build/upfront-vet, for go vet

flow-check: build/upfront ## what is wrong with a graph, FILE=graph.json, and what it takes; HOST=FILE: for the program that offers that
	@build/upfront flow check $(FILE) $(HOST:%=--host %)

flow-draw: build/upfront build/frogpond ## build/flow-E1M1.svg, the graph of a level: MAP=E1M1 (needs the package freedoom)
	@build/frogpond -wad builtin,$(WADS) -flow $(MAP) > build/flow-$(MAP).json
	@build/upfront flow draw build/flow-$(MAP).json -o build/flow-$(MAP).svg

# A package is named by the last element of its path. The suites that start programs of their own, and nothing else, are left out: an
# emulator doesn't start them.
TESTED = arena arena/blob scope scope/container scope/flow scope/flow/source budget budget/budgettest budget/record budget/view \
  platform $(POND) $(POND)/internal/doom $(POND)/internal/game $(POND)/internal/wire $(POND)/internal/client $(POND)/internal/disk \
  tests/conformance
SUITES = $(notdir $(TESTED))

# needs TARGET: fails where its compiler or its C library is missing, and says which packages have them. here TARGETS: those that have.
needs = [ -e "$$($($1.cc) -print-file-name=crt1.o 2> /dev/null)" ] || \
  { echo "$1: $($1.cc), or its C library, is missing; make deps-cross installs $($1.apt)"; exit 1; }
here = $(foreach t,$1,$(if $(shell ($(call needs,$t)) > /dev/null && echo $t),$t))

cross: ## library, tests and frogpond for arm64, and for every other target of cross/targets.mk whose compiler is here; REQUIRE_ALL=1: must be
	@for build in $(TARGETS:%=cross-%) $(CHECKED:%=cross-%) $(COMPILED:%=compile-%); do \
	  if $(MAKE) -s needs-$${build#*-} 2> /dev/null; then $(MAKE) --no-print-directory $$build || exit 1; \
	  elif [ $$build = cross-linux-arm64 ]; then exit 1; else lacks=$$REQUIRE_ALL; fi; \
	done; [ -z "$$lacks" ]
cross-test: cross ## runs what cross built under qemu-user, and plays as each device
	@$(MAKE) -s -k -O -j$$(nproc) $(foreach t,$(call here,$(CHECKED) $(TARGETS)),$(call runs,$t))
	@$(MAKE) -s $(foreach d,$(DEVICES),$(if $(call here,$($d.target)),device-$d))
cross-test-%: cross-%
	@$(MAKE) -s -k -O -j$$(nproc) $(call runs,$*)
arm64: ## every suite for arm64 under qemu-user, with pages of 4 KiB, the C core's tests, and a game that goes there and back, where its compiler is here
	@if $(MAKE) -s needs-linux-arm64 2> /dev/null; then $(MAKE) --no-print-directory cross-linux-arm64 && \
	  $(MAKE) -s -k -O -j$$(nproc) $(linux-arm64.suites:%=run@linux-arm64@%) c@linux-arm64 save@linux-arm64; else [ -z "$$REQUIRE_ALL" ]; fi

needs-%:
	@$(call needs,$*)

cross-%:
	@$(call needs,$*)
	@mkdir -p build/$*
	@ln -sf $$(command -v $($*.cc)) build/$*/gcc
	$(if $($*.flags),,$($*.env) $(GO) vet ./...)
	$($*.env) $(GO) build $($*.flags) -o build/$*/ ./tests/frogpond
	$($*.env) $(GO) test -c $($*.flags) -o build/$*/ $(TESTED:%=./%)

# One run is a word: run@TARGET@SUITE, or run@TARGET@SUITE@PAGE; c@TARGET is the C core's tests.
SHORT = -test.short
LIMIT = 20m
pages = run@$1@$2 $(if $3,run@$1@$2@16384 run@$1@$2@65536)
runs = $(foreach s,$($1.suites),$(call pages,$1,$s,$(filter $s,$($1.paged)))) c@$1
part = $(word $1,$(subst @, ,$2))

run@%:
	@$(call timed,$(subst @, ,$*),cd $(filter $(call part,2,$*) %/$(call part,2,$*),$(TESTED)) && $(call $(call part,1,$*).run,$(call part,3,$*)) \
	  $(CURDIR)/build/$(call part,1,$*)/$(call part,2,$*).test -test.timeout $(LIMIT) -test.skip='$($(call part,1,$*).but)' $(SHORT))
c@%:
	@$(call timed,$* C core,CC=$($*.cc) CFLAGS="$($*.cflags)" RUN="$($*.run)" sh tests/c/run.sh build/$*/c cross)
# Maps of a file that are saved here, loaded and saved there, and loaded here again.
SAVE_WAD  = builtin
SAVE_MAPS = MAP03
save@%: build/frogpond
	@$(call timed,$* saves,sh $(POND)/save.sh build/frogpond "$($*.run) build/$*/frogpond" build/$*/saves $(SAVE_WAD) $(SAVE_MAPS))
cross-save: ## a game that is saved here goes on on arm64, and back, and ends as in one go; SAVE_WAD, SAVE_MAPS: which
	@$(call needs,linux-arm64)
	@mkdir -p build/linux-arm64
	$(linux-arm64.env) $(GO) build -o build/linux-arm64/ ./$(POND)
	@$(MAKE) -s save@linux-arm64
# timed runs $2 and shows its output if it fails.
timed = from=$$(date +%s); out=$$($2 2>&1) || { echo "$$out" | tail -n 60; echo "$1: FAILED"; exit 1; }; echo "$1: ok, $$(($$(date +%s) - from)) s"

# The built-in maps as the device has them: its plan, its processor, its pages; their states and memory are those recorded here.
device-%:
	@mkdir -p build/device-$*
	$($($*.target).env) $($*.env) CGO_CFLAGS='-O2 -g $($*.cflags)' $(GO) test -c $($($*.target).flags) -o build/device-$*/ ./tests/frogpond
	@$(call timed,$*,cd tests/frogpond && env QEMU_CPU=$($*.cpu) QEMU_PAGESIZE=$($*.page) $($($*.target).run) \
	  $(CURDIR)/build/device-$*/frogpond.test -test.run '^TestHashes$$/^builtin$$' -plan $(CURDIR)/cross/$*.json)

compile-%:
	@$(call needs,$*)
	@mkdir -p build/$*
	$(compile-$*)

compile-windows-amd64 = $(windows-amd64.env) $(GO) vet ./arena_c ./arena ./scope/... ./budget ./platform/... && \
  $(windows-amd64.env) $(GO) build -o build/windows-amd64/ ./tests/frogpond
compile-darwin-arm64 = $(darwin-arm64.env) $(vet-platform) && for build in "" -DUPFRONT_CHECKED; do \
  clang $(darwin-arm64.c) -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only $$build arena_c/*.c || exit 1; done

# The C library: headers, both builds of the core, and pkg-config's files. CC, AR and CFLAGS are whatever make is called with.
VERSION   := $(shell sed -n 's/^.define UPFRONT_VERSION "\(.*\)"/\1/p' arena_c/upfront.h)
PREFIX     = /usr/local
PC_PREFIX  = $(PREFIX)
LIB        = build/lib
installed  = $(DESTDIR)$(PREFIX)
headers    = $(filter %.h,$(shell $(CC) -MM arena_c/callbacks.h))

install: ## the C headers, libraries and pkg-config files to DESTDIR and PREFIX=/usr/local
	install -d $(installed)/include/upfront $(installed)/lib/pkgconfig
	install -m 644 $(headers) $(installed)/include/upfront
	$(call library,upfront)
	$(call library,upfront-checked, -DUPFRONT_CHECKED,; the build that fills)

# library NAME, DEFINE, WHAT: one build of the core, with its .pc file. No debug information, which would hold this machine's paths.
define library
	@rm -rf $(LIB)/$(1)
	@mkdir -p $(LIB)/$(1)
	cd $(LIB)/$(1) && $(CC) -std=c11 -O2 -fPIC$(2) $(CFLAGS) -c $(CURDIR)/arena_c/*.c
	cd $(LIB)/$(1) && $(AR) rcsD lib$(1).a *.o
	install -m 644 $(LIB)/$(1)/lib$(1).a $(installed)/lib
	@sed 's|@PREFIX@|$(PC_PREFIX)|; s|@NAME@|$(1)|; s|@VERSION@|$(VERSION)|; s|@DEFINE@|$(2)|; s|@WHAT@|$(3)|' \
	  cross/upfront.pc.in > $(LIB)/$(1)/$(1).pc
	install -m 644 $(LIB)/$(1)/$(1).pc $(installed)/lib/pkgconfig
endef

# The same commit gives the same bytes, wherever it lies and whoever packs it.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct),0)
dist: $(TARGETS:%=dist-%) ## build/dist: a tarball for each target, with frogpond, the C library and a README

dist-%:
	@$(call needs,$*)
	$(eval name := upfront-$(VERSION)-$*)
	rm -rf build/dist/$(name)
	mkdir -p build/dist/$(name)/bin
	$($*.env) $(GO) build -trimpath $($*.flags) -o build/dist/$(name)/bin/ ./tests/frogpond
	$(MAKE) -s install CC=$($*.cc) AR=$($*.cc:gcc=ar) LIB=build/$*/lib DESTDIR=build/dist/$(name) PREFIX= PC_PREFIX='$$$${pcfiledir}/../..'
	install -m 644 LICENSE build/dist/$(name)
	@libc=$$(readelf -V build/dist/$(name)/bin/frogpond | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1); \
	  sed "s|@VERSION@|$(VERSION)|; s|@TARGET@|$*|; s|@CC@|$($*.cc)|; s|@LIBC@|$${libc:-nothing, it is static}|" \
	  cross/dist.txt > build/dist/$(name)/README
	tar -C build/dist --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime=@$(EPOCH) -cf - $(name) | \
	  gzip -9n > build/dist/$(name).tar.gz

deps: deps-cross ## installs all that check needs beyond Go, gcc and make (Debian, root)
	apt-get install -y -qq clang lld valgrind freedoom pkg-config strace chromium \
	  libenet-dev libjemalloc2 liblua5.4-dev libmimalloc-dev libphysfs-dev libsqlite3-dev

deps-cross: ## installs the cross compilers and qemu-user (Debian, root)
	apt-get update -qq
	apt-get install -y -qq $(sort $(foreach t,$(TARGETS) $(COMPILED),$($t.apt)))

# Without its tests, which are not run there: with them 130 packages more would be compiled for each system.
vet-platform = sh -c '$(GO) vet $$($(GO) list -f "{{range .GoFiles}}platform/{{.}} {{end}}" ./platform)'

MODULES = . tests/bench $(READERS) budget/save/s2 $(CLIENTS) tests/page
lint: build/upfront-vet ## format, vet in every build and for every system, upfront-vet, staticcheck, and the scripts' syntax
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	$(GO) mod verify > /dev/null
	$(GO) mod tidy -diff
	$(GO) vet ./...
	cd tests/bench && $(GO) vet ./... && $(GO) run $(STATIC) ./... && $(GO) test -short ./...
	for m in $(READERS) budget/save/s2; do \
	  (cd $$m && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATIC) ./... && $(GO) test ./...) || exit 1; done
	for m in $(CLIENTS) tests/page; do \
	  (cd $$m && $(GO) mod tidy -diff && $(GO) vet $(SYSTEM) ./... && $(GO) run $(STATIC) $(SYSTEM) ./...) || exit 1; done
	$(GO) vet -tags upfront_cgo ./arena_c ./arena ./scope/... ./budget/...
	$(GO) vet -tags checked ./...
	GOOS=windows CGO_ENABLED=0 $(vet-platform)
	GOOS=darwin CGO_ENABLED=0 $(vet-platform)
	for m in $(MODULES); do (cd $$m && $(GO) vet -vettool=$(CURDIR)/build/upfront-vet $(SYSTEM) ./...) || exit 1; done
	sh -n tests/c/run.sh
	sh -n $(POND)/save.sh
	bash -n .ci/run
	$(call static,release checked)

static: ## staticcheck, in every build
	$(call static,release checked bindings race asan)

# static BUILDS: what is unused must be so in each of them.
static = printf '$(foreach b,$1,$b: $(subst -race,GOFLAGS=-race,$(subst -asan,GOFLAGS=-asan,$(subst -tags ,-tags=,$(flags-$b))))\n)' | \
  $(GO) run $(STATIC) -matrix ./...

# parts LIST, ARGUMENTS: one after the other, and what each took.
define parts
	@costs=; for part in $1; do \
	  echo "== make $$part"; from=$$(date +%s); $(MAKE) --no-print-directory $$part $2 || exit 1; \
	  costs="$$costs$$(printf '\n  %-13s %5d s' $$part $$(($$(date +%s) - from)))"; \
	done; echo "make $@ passed; its parts took$$costs"
endef

# The release build's tests run in full, and the other builds' short: what the long form meets there, it meets in release. The random
# programs of tests/model are among them.
CHECKS = test lint growth clients page-test test-c race asan checked collector misuse fuzz arm64 bench-gate
check: FUZZ = 1s
check: ## what a change must pass; says what each part took
	$(call parts,$(CHECKS),FORM=-short FUZZ=$(FUZZ))

# What check leaves out, in its long form.
SOAKS = soak-bindings soak-builds soak-c soak-fuzz soak-freedoom soak-cross soak-pages soak-devices soak-model soak-hostile soak-save soak-serve soak-clients soak-fleet
.PHONY: $(SOAKS) soak-go127
soak: ## what check leaves out, in its long form: fourteen parts
	$(call parts,$(SOAKS))

# UPFRONT_SOAK: the release build's rounds, and each request of frogpond refused.
soak-bindings: ## all tests in their long form, each fast path through the C bindings
	UPFRONT_SOAK=1s $(GO) test -tags upfront_cgo -timeout 1h ./...
soak-builds: static ## the same with the race detector, with AddressSanitizer and in the checked build; staticcheck in every build
	UPFRONT_SOAK=1s $(GO) test -race -timeout 1h ./...
	UPFRONT_SOAK=1s $(GO) test -asan -timeout 1h ./...
	UPFRONT_SOAK=1s $(GO) test -tags checked -timeout 1h ./...
soak-c: ## the C core by clang, and under valgrind
	sh tests/c/run.sh build/c soak
soak-fuzz: ## every fuzz target for a minute
	$(MAKE) fuzz FUZZ=1m
soak-freedoom: freedoom ## all 68 maps in each build
soak-cross: ## every target but arm64, of 32 bits, static and with AddressSanitizer; what is only compiled
	$(MAKE) $(COMPILED:%=compile-%) $(patsubst %,cross-test-%,$(filter-out linux-arm64,$(CHECKED) $(TARGETS)))
soak-pages: cross-linux-arm64 ## arm64: every suite in full, with pages of 4, 16 and 64 KiB
	@$(MAKE) -s -k -O -j$$(nproc) SHORT= LIMIT=2h $(call runs,linux-arm64)
soak-devices: soak-go127 $(DEVICES:%=device-%) ## frogpond as each device has it; and the next release of Go
soak-model: model ## random programs for TIME=1m in each build
soak-hostile: ## ten minutes each: graphs as blobs and as JSON, maps with hostile specials, files, deltas and images of a state
	$(MAKE) fuzz FUZZ=10m ONLY='Fuzz(Load|Compile|WAD|Apply|Image|Decompress|Read|Replay)'
# again@WORKERS, again@twice: what is played again here; again@linux-arm64: there.
again.run = $(if $(filter twice,$1),^(TestSyncTest|TestPlants)$$,^TestRollback$$/./^$(or $(filter 1 2 4,$1),2)$$)
again@%:
	@$(call timed,$* again,cd $(POND) && UPFRONT_SOAK=1s $($*.run) $(CURDIR)/build/$(if $($*.run),$*/)frogpond.test \
	  -test.timeout 6h -test.run '$(call again.run,$*)')
soak-save: cross-save ## all 68 maps played again: 3,500 ticks with late inputs, by 1, 2 and 4 workers and on arm64; 700 ticks, each twice; and saves to arm64 and back
	$(GO) test -c -o build/ ./$(POND)
	$(linux-arm64.env) $(GO) test -c -o build/linux-arm64/ ./$(POND)
	@$(MAKE) -s save@linux-arm64 SAVE_WAD=$(WADS) SAVE_MAPS='E1M1 E2M2 E4M4 MAP07 MAP20 MAP32'
	@$(MAKE) -s -k -O -j$$(nproc) again@linux-arm64 again@1 again@2 again@4 again@twice
soak-serve: ## frogpond's server and its bots as programs: a minute of 64 full rooms, overload, attackers; ten minutes each: what parses packets and files
	UPFRONT_SOAK=1m $(GO) test -count=1 -timeout 1h -v -run '^TestServe' ./$(POND)
	$(MAKE) fuzz FUZZ=10m ONLY='Fuzz(Packets|Views|Client|Save|Record|Scores)'
soak-clients: ## wasm modules, SQLite, Lua and Arrow in budgets: all tests, in release, with the race detector, and in the checked build
	$(GO) run ./tests/clients -soak
	for m in $(CLIENTS); do for build in -race "-tags checked"; do \
	  (cd $$m && $(GO) test -timeout 1h $$build ./...) || exit 1; done; done
soak-fleet: fleet ## servers of a plan on nodes: what the tool prints is Kubernetes', and holds in a cgroup of that size
	cd tests/fleet && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATIC) ./... && $(GO) test -count=1 -v ./...
soak-go127: ## vet and the heart's tests under the next release of Go; what must be inlined is inlined there
	GOTOOLCHAIN=$(NEXT_GO) $(GO) vet ./...
	GOTOOLCHAIN=$(NEXT_GO) $(GO) test ./arena ./scope/... ./budget/... ./tests/conformance

readme: ## what is generated in the pages, anew: the table of misuse, the picture of a plan; then all of them are compared
	$(GO) test ./budget/view ./tests/misuse ./tests/frogpond -run 'Handheld|Golden|Readme|FlowPage|SawTooth' -update
	$(GO) test ./budget/view ./tests/misuse ./tests/frogpond ./tests -run 'Handheld|Golden|Readme|FlowPage|SawTooth|Bench|Core|Platforms|Rooms|Pages'

clean: ## removes what was built here
	rm -rf build
