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
	{func(p *Plan) { p.Pages.Prefault = 4 }, "pages.prefault: 4; a demand is Default, Off, Wished or Required"},
	{func(p *Plan) { p.Pages.Lock = 255 }, "pages.lock: 255; a demand is"},
	{func(p *Plan) { p.Pages.Huge = 4 }, "pages.huge: 4; a demand is"},
	{func(p *Plan) { p.Pages.Guards = 4 }, "pages.guards: 4; a demand is"},
	{func(p *Plan) { p.Pages.Base = 4 }, "pages.base: 4; a demand is"},
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
	for demand, word := range map[Demand]string{Default: "default", Off: "off", Wished: "wished", Required: "required", 4: "Demand(4)"} {
		assert.Equal(t, word, demand.String())
		text, err := json.Marshal(Plan{Pages: Pages{Lock: demand}})
		switch {
		case demand > Required:
			assert.ErrorContains(t, err, "budget: Demand(4) is none of Default, Off, Wished and Required")
		case demand == Default:
			assert.Equal(t, `{}`, string(text))
		default:
			assert.Equal(t, `{"pages":{"lock":"`+word+`"}}`, string(text))
			read, err := parseDemand(word)
			require.NoError(t, err)
			assert.Equal(t, demand, read)
		}
	}
	for _, word := range []string{"on", "OFF", " off", "default", "Demand(1)", ""} {
		_, err := parseDemand(word)
		assert.EqualError(t, err, `is not a demand ("off", "wished" or "required")`)
	}
}
