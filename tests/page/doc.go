// Package page drives Chromium over the pages of a running frogpond, while bots play. Its tests
// need Chromium and axe-core. make gate ARGS=pages installs axe-core below build/page, where the
// tests put their screenshots.
package page
