module github.com/upfront-mem/upfront/tests/others

go 1.26.0

replace (
	github.com/upfront-mem/upfront => ../..
	github.com/upfront-mem/upfront/scope/with/wazero => ../../scope/with/wazero
)
