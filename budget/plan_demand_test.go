package budget

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// planPagesChecks are about pages and the base.
var planPagesChecks = []struct {
	change func(*Plan)
	fault  string
}{
	{func(p *Plan) { p.Pages = Pages{Required, Required, Required, Required, Off} }, ""},
	{func(p *Plan) { p.Pages.Prefault = "on" }, `pages.prefault: "on"; a demand is "off", "wished" or "required"`},
	{func(p *Plan) { p.Pages.Lock = "on" }, `pages.lock: "on"; a demand is`},
	{func(p *Plan) { p.Pages.Huge = "on" }, `pages.huge: "on"; a demand is`},
	{func(p *Plan) { p.Pages.Guards = "on" }, `pages.guards: "on"; a demand is`},
	{func(p *Plan) { p.Pages.Base = "on" }, `pages.base: "on"; a demand is`},
	{func(p *Plan) { p.Pages.Base = Wished }, "base: 0, but pages.base is wished; give both or neither"},
	{func(p *Plan) { p.Pages.Base = Required }, "base: 0, but pages.base is required; give both or neither"},
	{func(p *Plan) { p.Base, p.Pages.Base = 64*KiB, Required }, ""},
	{func(p *Plan) { p.Base, p.Pages.Base = 64*KiB, Off }, ""},
	{func(p *Plan) { p.Base = 64*KiB + 4096 }, "base: 0x11000; it is a multiple of 64KiB (0x10000)"},
	{func(p *Plan) { p.Base = 1 }, "base: 0x1; it is a multiple of 64KiB (0x10000)"},
	{func(p *Plan) { p.Base = 1 << 47 }, "base: 0x800000000000; addresses end at 0x800000000000"},
	{func(p *Plan) { p.Base = 0xffff_ffff_ffff_0000 }, "base: 0xffffffffffff0000; addresses end at 0x800000000000"},
	{func(p *Plan) { p.Base = 1<<47 - 62*MiB }, ""},
	{func(p *Plan) { p.Base = 1<<47 - 62*MiB + 64*KiB },
		"base: 0x7ffffc210000; the parts need 62MiB from there, and addresses end at 0x800000000000"},
	{func(p *Plan) { p.Base, p.Size = 1<<47-63*MiB, 63*MiB+1 }, "base: 0x7ffffc100000; the parts need 64576KiB from there, and"},
	{func(p *Plan) { p.Base, p.Size = 1<<47-63*MiB, 63*MiB }, ""},
	{func(p *Plan) { p.Base, p.Pages.Guards = 1<<47-62*MiB, Wished }, "base: 0x7ffffc200000; the parts need 64064KiB from there, and"},
}

func TestDemand(t *testing.T) {
	for _, demand := range []Demand{Off, Wished, Required} {
		text, err := json.Marshal(Plan{Pages: Pages{Lock: demand}})
		require.NoError(t, err)
		assert.Equal(t, `{"pages":{"lock":"`+string(demand)+`"}}`, string(text))
		var read Demand
		require.NoError(t, planValue([]byte(`"`+demand+`"`), &read))
		assert.Equal(t, demand, read)
	}
	text, err := json.Marshal(Plan{Pages: Pages{Lock: Default}})
	require.NoError(t, err)
	assert.Equal(t, `{}`, string(text))
	for _, word := range []string{"on", "OFF", " off", "default", ""} {
		assert.EqualError(t, planValue([]byte(`"`+word+`"`), new(Demand)), `is not a demand ("off", "wished" or "required")`)
	}
}
