# Reads `go test -bench` output; prints the median of each benchmark's ns/unit, and its ratio to the floor of the same work, as a table.
/^Benchmark/ {
	name = $1
	sub(/^Benchmark/, "", name)
	sub(/-[0-9]+$/, "", name)
	if (!(name in count)) order[++names] = name
	for (i = 2; i <= NF; i++) if ($i == "ns/unit") value[name, ++count[name]] = $(i - 1) + 0
}
/^cpu:/ { sub(/^cpu: */, ""); print "cpu: " $0 "\n" }
function median(name,   i, j, t, n) {
	n = count[name]
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && value[name, j] < value[name, j - 1]; j--) {
			t = value[name, j]; value[name, j] = value[name, j - 1]; value[name, j - 1] = t
		}
	return n % 2 ? value[name, (n + 1) / 2] : (value[name, n / 2] + value[name, n / 2 + 1]) / 2
}
END {
	print "| work | who | ns per unit | of the floor |"
	print "|---|---|---|---|"
	for (k = 1; k <= names; k++) {
		split(order[k], part, "_")
		m = median(order[k])
		if (part[3] == "Floor") floor[part[1]] = m
		printf "| %s %s | %s | %.1f | %s |\n", part[1], tolower(part[2]), part[3], m, part[1] in floor ? sprintf("%.2f", m / floor[part[1]]) : "-"
	}
}
