# The commands for people; `make help` lists them. A Go program, tests/run, runs the steps and
# builds for other machines. It needs Go, gcc and make; a step skips the tests of a missing tool and
# names it at its end.

GO   = go
RUN  = $(GO) run ./tests/run
POND = tests/frogpond
WADS = /usr/share/games/doom/freedoom1.wad,/usr/share/games/doom/freedoom2.wad
ARGS =
TIME = 10s
ONLY =
# AddressSanitizer looks for C's leaks at the end of a process.
export ASAN_OPTIONS = detect_leaks=1

.DEFAULT_GOAL = help
.PHONY: help run serve bots test check gate soak mutants lint fuzz bench bench-base others strangers cross dist install deps deps-wine tools plan base readme clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

run: build/frogpond ## frogpond plays its levels; ARGS='-v -ticks 35', ARGS=-h
	@./build/frogpond $(ARGS)
serve: build/frogpond ## frogpond as a game server on 127.0.0.1:35035; ARGS=-h
	@./build/frogpond serve $(ARGS)
bots: build/frogpond ## 16 players for that server, for a minute; ARGS=-h
	@./build/frogpond bots $(ARGS)

test: ## every package's quick tests: go test ./...
	@$(RUN) test
check: ## the proof of a change; ARGS='lint race' runs two parts of it
	@$(RUN) check $(ARGS)
gate: ## the proof of a release: every build, pages, fuzzing
	@$(RUN) gate $(ARGS)
soak: ## the long forms, hours
	@$(RUN) soak $(ARGS)
mutants: ## puts known faults into the code for tests to find; ARGS=-list
	@$(GO) run ./tests/mutants $(ARGS)
lint: ## format, vet, staticcheck, upfront-vet of each module; ARGS=.
	@$(RUN) lint $(ARGS)
fuzz: ## each fuzz target for TIME=10s; ONLY='Fuzz(Load|WAD)'
	@$(RUN) fuzz $(TIME) '$(ONLY)'

# The first program drives the others: one with each fast path through the bindings, and one with
# Go's arena experiment.
BENCH = $(CURDIR)/build/bench
bench: ## measures costs, into build/bench.md; ARGS='-works A,C'
	@mkdir -p build
	@cd tests/bench && $(GO) build -o $(BENCH) . && $(GO) build -tags upfront_cgo -o $(BENCH)-cgo . && \
	  GOEXPERIMENT=arenas $(GO) build -o $(BENCH)-arenas . && $(BENCH) -out $(CURDIR)/build $(ARGS)
bench-base: ## renews the instruction counts that make check compares with
	@mkdir -p build
	@cd tests/bench && $(GO) build -o $(BENCH) . && $(BENCH) -base
others: ## other people's programs in a budget: a table; ARGS=-short
	@cd tests/others && $(GO) run . $(ARGS)
strangers: ## programs written by the docs only, and Go twins; ARGS=-h
	@$(GO) run ./tests/strangers $(ARGS)

cross: ## a handheld's files, for each target; ARGS=linux-arm64
	@$(RUN) cross $(ARGS)
dist: ## build/dist: a tarball of it for each target
	@$(RUN) dist $(ARGS)
deps: ## all steps' tools (Debian, root) and modules; deps-wine: Wine
	apt-get update -qq
	apt-get install -y -qq $$($(RUN) deps)
	$(RUN) fetch
deps-wine:
	apt-get update -qq
	apt-get install -y -qq --no-install-recommends wine64 gcc-mingw-w64-x86-64-win32

build/frogpond: FORCE
	@mkdir -p build
	@$(GO) build -o $@ ./$(POND)
FORCE:
tools: ## build/upfront, the tool, and build/upfront-vet, for go vet
	@mkdir -p build
	@cd budget/cmd && $(GO) build -buildvcs=false -o $(CURDIR)/build/ ./upfront ./upfront-vet

# frogpond's plan is its peaks in a wide plan, and a tenth more. The peaks are of three kinds: init
# with all its files, the largest last, because a file's table is read next to the free rest; each
# map with 4 workers; and one map for 400000 ticks, whose durations are kept in the region systems.
# The timelines of the two runs are the expected use.
RECORD = build/frogpond -json -plan $(POND)/testdata/wide.json
plan: build/frogpond ## renews frogpond's plan.json (package freedoom)
	$(RECORD) -wad builtin,$(WADS) -ticks 3500 -workers 4 -report $(POND)/testdata/recorded/freedoom.json -timeline build/freedoom.json > build/record.json
	$(RECORD) -wad builtin -maps MAP01 -ticks 400000 -report $(POND)/testdata/recorded/long.json -timeline build/long.json > build/record.json
	UPFRONT_STEP=check $(GO) test -count=1 -run '^TestPlanIsRecordedPeaks$$' ./$(POND) -update
base: build/frogpond ## renews the record of frogpond's memory, for make gate
	@build/frogpond -json -wad builtin -ticks 350 -report $(POND)/testdata/recorded/builtin.json > build/record.json
readme: ## renews the generated parts of the pages
	UPFRONT_STEP=check $(GO) test ./budget/guide ./budget/view ./tests/misuse ./$(POND) -run 'Handheld|Golden|Readme|GamePage|FlowPage|SawTooth' -update
	@$(GO) test ./tests -run ReadmeRows -update

# The C library: headers, both builds of the core, and files for pkg-config. The caller may set CC,
# AR and CFLAGS.
VERSION   := $(shell sed -n 's/^.define UPFRONT_VERSION "\(.*\)"/\1/p' arena_c/upfront.h)
PREFIX     = /usr/local
PC_PREFIX  = $(PREFIX)
LIB        = build/lib
installed  = $(DESTDIR)$(PREFIX)
headers    = $(filter %.h,$(shell $(CC) -MM arena_c/callbacks.h))

install: ## the C library to DESTDIR and PREFIX=/usr/local
	install -d $(installed)/include/upfront $(installed)/lib/pkgconfig
	install -m 644 $(headers) $(installed)/include/upfront
	$(call library,upfront)
	$(call library,upfront-checked, -DUPFRONT_CHECKED,; the build that fills)
	$(if $(findstring linux,$(shell $(CC) -dumpmachine)),$(preloaded))

# C's malloc in a heap of a fixed size, for LD_PRELOAD: arena/with/malloc without Go.
define preloaded
$(CC) -std=c11 -O2 -fPIC -shared -fvisibility=hidden -DUPFRONT_MALLOC_PRELOAD -Iarena_c $(CFLAGS) \
  -o $(LIB)/libupfront-malloc.so arena/with/malloc/process.c arena/with/malloc/profile.c arena/with/malloc/caller.c arena_c/heap.c arena_c/heap_walk.c -lpthread -ldl
install -m 755 $(LIB)/libupfront-malloc.so $(installed)/lib
endef

# library NAME, DEFINE, SUFFIX: one build of the core, with its .pc file. Debug information would
# hold this machine's paths, so the build has none.
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

clean: ## removes build/
	rm -rf build
