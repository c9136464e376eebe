package budget

import (
	"cmp"
	"log/slog"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// LogValue is the report as a group of attributes: sizes are numbers of bytes, each region a group of its own under its
// name ("level", "match.3"), and so are frame and scratch arenas ("frame.0", "scratch.0.1"). An arena that was never used is left
// out.
func (r Report) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("name", r.Name), slog.Uint64("size", r.Size), slog.Bool("prefaulted", r.Prefaulted)}
	if len(r.NotGranted) > 0 {
		attrs = append(attrs, slog.Any("not_granted", r.NotGranted))
	}
	attrs = append(attrs, arenaAttrs("regions", r.Regions), arenaAttrs("beside", r.Beside), slog.Any("leaks", r.Leaks))
	if len(r.Errors) > 0 {
		attrs = append(attrs, slog.Any("errors", r.Errors))
	}
	return slog.GroupValue(append(attrs, slog.Int("error_count", r.ErrorCount), slog.Any("go_heap", r.GoHeap))...)
}

func arenaAttrs(key string, list []RegionReport) slog.Attr {
	var attrs []slog.Attr
	for _, x := range list {
		if x.Peak != 0 || x.Finalizers != 0 {
			attrs = append(attrs, slog.Any(strings.ReplaceAll(x.Name, " ", "."), x))
		}
	}
	return slog.Attr{Key: key, Value: slog.GroupValue(attrs...)}
}

// LogValue is the figures as a group of attributes, with what scopes and labels hold and held, by name.
func (r RegionReport) LogValue() slog.Value {
	attrs := []slog.Attr{slog.Uint64("size", r.Size), slog.Uint64("used", r.Used), slog.Uint64("peak", r.Peak),
		slog.Uint64("load_peak", r.LoadPeak), slog.Uint64("free", r.Free)}
	attrs = counted(counted(attrs, "padding", r.Padding), "objects", r.Objects)
	attrs = append(attrs, slog.Uint64("finalizers", r.Finalizers), slog.Uint64("pool_cap", r.PoolCap),
		slog.Uint64("pool_peak", r.PoolPeak), slog.Any("most_open", r.MostOpen))
	return slog.GroupValue(append(attrs, usageAttrs("scopes", r.Scopes), usageAttrs("labels", r.Labels))...)
}

func usageAttrs(key string, list []scope.Usage) slog.Attr {
	var attrs []slog.Attr
	for _, u := range list {
		line := counted([]slog.Attr{slog.Uint64("bytes", u.Bytes)}, "objects", u.Objects)
		line = counted(append(line, slog.Uint64("peak", u.Peak)), "peak_objects", u.PeakObjects)
		attrs = append(attrs, slog.Attr{Key: cmp.Or(u.Name, `""`), Value: slog.GroupValue(line...)})
	}
	return slog.Attr{Key: key, Value: slog.GroupValue(attrs...)}
}

// counted adds what only checked builds count, where there is some.
func counted(attrs []slog.Attr, key string, count uint64) []slog.Attr {
	if count == 0 {
		return attrs
	}
	return append(attrs, slog.Uint64(key, count))
}

// LogValue is the counts as a group of attributes.
func (l Limits) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("scopes", l.Scopes), slog.Int("pools", l.Pools), slog.Int("owned", l.Owned),
		slog.Int("labels", l.Labels))
}

// LogValue is the counts as a group of attributes.
func (l Leaks) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("scopes", l.Scopes), slog.Int("owned", l.Owned), slog.Int("finalizers", l.Finalizers),
		slog.Int("slots", l.Slots), slog.Int("scratch", l.Scratch))
}

// LogValue is the figures as a group of attributes.
func (h GoHeap) LogValue() slog.Value {
	return slog.GroupValue(slog.Uint64("limit", h.Limit), slog.Uint64("used", h.Used), slog.Uint64("collections", h.Collections))
}
