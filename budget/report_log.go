package budget

import (
	"cmp"
	"log/slog"
	"reflect"
	"strings"
)

// LogValue is the report as a group of attributes, each under its key in JSON: sizes are numbers of bytes,
// each region is a group of its own under its name ("level", "match.3"), and so are frame and scratch
// arenas ("frame.0", "scratch.0.1"). An arena that was never used is left out, and so is the plan.
func (r Report) LogValue() slog.Value {
	r.Regions, r.Beside = used(r.Regions), used(r.Beside)
	return slog.GroupValue(append([]slog.Attr{slog.String("name", r.Name)}, logged(reflect.ValueOf(r))...)...)
}

// LogValue is the figures as a group of attributes, with what scopes and labels hold and held, by name.
func (r RegionReport) LogValue() slog.Value { return slog.GroupValue(logged(reflect.ValueOf(r))...) }

func used(list []RegionReport) (some []RegionReport) {
	for _, x := range list {
		if x.Peak != 0 || x.Finalizers != 0 {
			some = append(some, x)
		}
	}
	return some
}

// logged are the fields of a struct but for its name, which is the key of the group that they are.
func logged(v reflect.Value) (attrs []slog.Attr) {
	for i := range v.NumField() {
		field := v.Field(i)
		key, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		list := field.Kind() == reflect.Slice
		switch {
		case key == "name" || key == "plan":
		case option == "omitempty" && (field.IsZero() || list && field.Len() == 0):
		case field.Kind() == reflect.Struct:
			attrs = append(attrs, slog.Attr{Key: key, Value: slog.GroupValue(logged(field)...)})
		case list && field.Type().Elem().Kind() == reflect.Struct:
			var named []slog.Attr
			for k := range field.Len() {
				name := strings.ReplaceAll(field.Index(k).FieldByName("Name").String(), " ", ".")
				named = append(named, slog.Attr{Key: cmp.Or(name, `""`), Value: slog.GroupValue(logged(field.Index(k))...)})
			}
			attrs = append(attrs, slog.Attr{Key: key, Value: slog.GroupValue(named...)})
		default:
			attrs = append(attrs, slog.Any(key, field.Interface()))
		}
	}
	return attrs
}
