package budget

// StrictBuild says whether Strict looks at the Go heap.
const StrictBuild = strictBuild
