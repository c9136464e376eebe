package main

// build names the build that runs; the files variant_*.go set it by their tags.
var build = "release"
