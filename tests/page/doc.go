// Package page drives a browser over the pages of a running server: frogpond, with bots that play.
// Its tests need Chromium and axe-core (make gate ARGS=pages installs that below build/page, where they put
// screenshots, too).
package page
