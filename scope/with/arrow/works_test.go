package arrow_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// A work is a query's work on columns that are elsewhere. It returns its result as text.
type work struct {
	name string
	do   func(ctx context.Context, mem memory.Allocator, in columns) (string, error)
}

// columns are the arguments of works, of one length.
type columns struct {
	ages, names, lists, structs, colours, unions, selected arrow.Array
	rows                                                   arrow.RecordBatch
	table                                                  arrow.Table
}

func (in columns) release() {
	for _, column := range in.all() {
		column.Release()
	}
	in.rows.Release()
	in.table.Release()
}

func (in columns) all() []arrow.Array {
	return []arrow.Array{in.ages, in.names, in.lists, in.structs, in.colours, in.unions, in.selected}
}

// column makes an array of a type, with the values of value for each index, as JSON.
func column(t testing.TB, mem memory.Allocator, dt arrow.DataType, n int, value func(i int) string) arrow.Array {
	t.Helper()
	values := make([]string, n)
	for i := range values {
		values[i] = value(i)
	}
	a, _, err := array.FromJSON(mem, dt, strings.NewReader("["+strings.Join(values, ",")+"]"))
	require.NoError(t, err)
	return a
}

// newColumns makes columns of n frogs.
func newColumns(t testing.TB, mem memory.Allocator, n int) (in columns) {
	t.Helper()
	pair := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})
	in.ages = column(t, mem, arrow.PrimitiveTypes.Int32, n, func(i int) string {
		if i%7 == 3 {
			return "null"
		}
		return fmt.Sprint(i * 31 % 50)
	})
	in.names = column(t, mem, arrow.BinaryTypes.String, n, func(i int) string {
		return fmt.Sprintf("%q", strings.Repeat("frog", i%5))
	})
	in.lists = column(t, mem, arrow.ListOf(arrow.PrimitiveTypes.Int16), n, func(i int) string {
		return fmt.Sprintf("[%d,%d]", i%9, i%4)
	})
	in.structs = column(t, mem, pair, n, func(i int) string { return fmt.Sprintf(`{"x":%d,"y":"%d"}`, i, i*i) })
	colours := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	in.colours = column(t, mem, colours, n, func(i int) string { return []string{`"green"`, `"red"`, "null"}[i%3] })
	union := arrow.DenseUnionOf([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "b", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, []arrow.UnionTypeCode{0, 1})
	in.unions = column(t, mem, union, n, func(i int) string { return fmt.Sprintf("[%d,%d]", i%2, i) })
	in.selected = column(t, mem, arrow.FixedWidthTypes.Boolean, n, func(i int) string {
		return []string{"true", "false", "true", "null"}[i%4]
	})

	schema := arrow.NewSchema([]arrow.Field{{Name: "ages", Type: in.ages.DataType(), Nullable: true},
		{Name: "names", Type: in.names.DataType(), Nullable: true}, {Name: "structs", Type: in.structs.DataType(),
			Nullable: true}}, nil)
	in.rows = array.NewRecordBatch(schema, []arrow.Array{in.ages, in.names, in.structs}, int64(n))
	parts := []arrow.RecordBatch{in.rows.NewSlice(0, int64(n/3)), in.rows.NewSlice(int64(n/3), int64(n))}
	in.table = array.NewTableFromRecords(schema, parts)
	for _, part := range parts {
		part.Release()
	}
	return in
}

// called is a call of compute on a column.
func called(name string, of func(in columns) []arrow.Array,
	call func(ctx context.Context, args []compute.Datum) (compute.Datum, error)) work {
	return work{name, func(ctx context.Context, _ memory.Allocator, in columns) (string, error) {
		var args []compute.Datum
		for _, a := range of(in) {
			d := compute.NewDatum(a)
			defer d.Release()
			args = append(args, d)
		}
		result, err := call(ctx, args)
		if err != nil {
			return "", err
		}
		defer result.Release()
		return text(result), nil
	}}
}

func text(d compute.Datum) string {
	switch d := d.(type) {
	case *compute.ArrayDatum:
		a := d.MakeArray()
		defer a.Release()
		return a.String()
	case *compute.ChunkedDatum:
		return fmt.Sprint(d.Value.Chunks())
	case *compute.RecordDatum:
		return fmt.Sprint(d.Value)
	case *compute.TableDatum:
		return fmt.Sprint(d.Value)
	}
	return d.String()
}

func filtered(name string, of func(in columns) arrow.Array) work {
	return called("filter "+name, func(in columns) []arrow.Array { return []arrow.Array{of(in), in.selected} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			return compute.Filter(ctx, args[0], args[1],
				compute.FilterOptions{NullSelection: compute.SelectionEmitNulls})
		})
}

func function(name string, opts compute.FunctionOptions, of func(in columns) arrow.Array) work {
	return called(name, func(in columns) []arrow.Array { return []arrow.Array{of(in)} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			return compute.CallFunction(ctx, name, opts, args...)
		})
}

// works has builders, and a function of compute for each way to allocate: before it starts
// goroutines, on them, on goroutines that they start, and in results.
var works = []work{
	{"build numbers", func(_ context.Context, mem memory.Allocator, in columns) (string, error) {
		b := array.NewInt64Builder(mem)
		defer b.Release()
		for i := range in.ages.Len() {
			if b.Append(int64(i)); i%10 == 0 {
				b.AppendNull()
			}
		}
		a := b.NewArray()
		defer a.Release()
		return a.String(), nil
	}},
	{"build texts", func(_ context.Context, mem memory.Allocator, in columns) (string, error) {
		b := array.NewStringBuilder(mem)
		defer b.Release()
		for i := range in.ages.Len() {
			b.Append(strings.Repeat("x", i%20))
		}
		a := b.NewArray()
		defer a.Release()
		return a.String(), nil
	}},
	{"build lists", func(_ context.Context, mem memory.Allocator, in columns) (string, error) {
		b := array.NewListBuilder(mem, arrow.FixedWidthTypes.Boolean)
		defer b.Release()
		values := b.ValueBuilder().(*array.BooleanBuilder)
		for i := range in.ages.Len() {
			b.Append(true)
			values.AppendValues([]bool{i%2 == 0, true}, nil)
		}
		a := b.NewArray()
		defer a.Release()
		return a.String(), nil
	}},
	{"concatenate", func(_ context.Context, mem memory.Allocator, in columns) (string, error) {
		a, err := array.Concatenate([]arrow.Array{in.names, in.names}, mem)
		if err != nil {
			return "", err
		}
		defer a.Release()
		return a.String(), nil
	}},
	{"concatenate list views", func(_ context.Context, mem memory.Allocator, in columns) (string, error) {
		b := array.NewListViewBuilder(mem, arrow.PrimitiveTypes.Int16)
		defer b.Release()
		built := func(length int) arrow.Array {
			values := b.ValueBuilder().(*array.Int16Builder)
			for i := range in.ages.Len() {
				size := length * (i % 4)
				b.AppendWithSize(i%4 != 0, size) // some are null
				for range size {
					values.Append(int16(i))
				}
			}
			return b.NewArray()
		}
		parts := []arrow.Array{built(1), built(2)}
		a, err := array.Concatenate(parts, mem)
		for _, part := range parts {
			part.Release()
		}
		if err != nil {
			return "", err
		}
		defer a.Release()
		built(3).Release() // in the place of the parts
		return a.String(), a.(*array.ListView).ValidateFull()
	}},
	{"write and read", func(_ context.Context, mem memory.Allocator, in columns) (string, error) {
		var file bytes.Buffer
		w := ipc.NewWriter(&file, ipc.WithSchema(in.rows.Schema()), ipc.WithAllocator(mem), ipc.WithZstd())
		if err := w.Write(in.rows); err != nil {
			return "", err
		}
		if err := w.Close(); err != nil {
			return "", err
		}
		r, err := ipc.NewReader(&file, ipc.WithAllocator(mem))
		if err != nil {
			return "", err
		}
		defer r.Release()
		rows, err := r.Read()
		if err != nil {
			return "", err
		}
		return fmt.Sprint(rows), nil
	}},
	{"filter rows", func(ctx context.Context, _ memory.Allocator, in columns) (string, error) {
		rows, err := compute.FilterRecordBatch(ctx, in.rows, in.selected, compute.DefaultFilterOptions())
		if err != nil {
			return "", err
		}
		defer rows.Release()
		return fmt.Sprint(rows), nil
	}},
	{"filter a table", func(ctx context.Context, _ memory.Allocator, in columns) (string, error) {
		d := compute.NewDatum(in.selected)
		defer d.Release()
		table, err := compute.FilterTable(ctx, in.table, d, compute.DefaultFilterOptions())
		if err != nil {
			return "", err
		}
		defer table.Release()
		return fmt.Sprint(table), nil
	}},
	{"filter a table elsewhere", func(ctx context.Context, _ memory.Allocator, in columns) (result string, err error) {
		d, table := compute.NewDatum(in.selected), compute.NewDatum(in.table)
		defer d.Release()
		defer table.Release()
		ended := make(chan bool)
		go func() {
			defer close(ended)
			kept, called := compute.Filter(ctx, table, d, *compute.DefaultFilterOptions())
			if err = called; err == nil {
				defer kept.Release()
				result = text(kept)
			}
		}()
		<-ended
		return result, err
	}},
	{"take of a table", func(ctx context.Context, _ memory.Allocator, in columns) (string, error) {
		d, table := compute.NewDatum(in.ages), compute.NewDatum(in.table)
		defer d.Release()
		defer table.Release()
		taken, err := compute.Take(ctx, *compute.DefaultTakeOptions(), table, d)
		if err != nil {
			return "", err
		}
		defer taken.Release()
		return text(taken), nil
	}},
	{"sort a table", func(ctx context.Context, _ memory.Allocator, in columns) (string, error) {
		key := compute.DefaultSortKey()
		key.ColumnIndex = 1
		table, err := compute.SortTable(ctx, in.table, []compute.SortKey{key})
		if err != nil {
			return "", err
		}
		defer table.Release()
		return fmt.Sprint(table), nil
	}},
	{"sort rows", func(ctx context.Context, _ memory.Allocator, in columns) (string, error) {
		key := compute.DefaultSortKey()
		a, err := compute.SortIndicesArray(ctx, in.ages, key)
		if err != nil {
			return "", err
		}
		defer a.Release()
		return a.String(), nil
	}},
	filtered("numbers", func(in columns) arrow.Array { return in.ages }),
	filtered("texts", func(in columns) arrow.Array { return in.names }),
	filtered("lists", func(in columns) arrow.Array { return in.lists }),
	filtered("structs", func(in columns) arrow.Array { return in.structs }),
	filtered("a dictionary", func(in columns) arrow.Array { return in.colours }),
	filtered("unions", func(in columns) arrow.Array { return in.unions }),
	called("is in", func(in columns) []arrow.Array { return []arrow.Array{in.names, in.names} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			return compute.IsInSet(ctx, args[1], args[0])
		}),
	called("add", func(in columns) []arrow.Array { return []arrow.Array{in.ages, in.ages} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			return compute.Add(ctx, compute.ArithmeticOptions{}, args[0], args[1])
		}),
	function("cast", compute.SafeCastOptions(arrow.BinaryTypes.String), func(in columns) arrow.Array {
		return in.ages
	}),
	function("cast", compute.SafeCastOptions(arrow.ListOf(arrow.PrimitiveTypes.Int64)),
		func(in columns) arrow.Array { return in.lists }),
	function("unique", nil, func(in columns) arrow.Array { return in.names }),
	function("dictionary_encode", nil, func(in columns) arrow.Array { return in.names }),
	function("cumulative_sum", nil, func(in columns) arrow.Array { return in.ages }),
	function("run_end_encode", &compute.RunEndEncodeOptions{RunEndType: arrow.PrimitiveTypes.Int32},
		func(in columns) arrow.Array { return in.ages }),
	called("take, chunk by chunk", func(in columns) []arrow.Array { return []arrow.Array{in.ages} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			a := args[0].(*compute.ArrayDatum).MakeArray()
			defer a.Release()
			twice := arrow.NewChunked(a.DataType(), []arrow.Array{a, a})
			defer twice.Release()
			chunked := compute.NewDatum(twice)
			defer chunked.Release()
			return compute.Take(ctx, *compute.DefaultTakeOptions(), args[0], chunked)
		}),
	called("encode and decode runs", func(in columns) []arrow.Array { return []arrow.Array{in.ages} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			runs, err := compute.RunEndEncode(ctx, compute.RunEndEncodeOptions{RunEndType: arrow.PrimitiveTypes.Int32},
				args[0])
			if err != nil {
				return nil, err
			}
			defer runs.Release()
			return compute.RunEndDecode(ctx, runs)
		}),
	called("element of a list", func(in columns) []arrow.Array { return []arrow.Array{in.lists} },
		func(ctx context.Context, args []compute.Datum) (compute.Datum, error) {
			return compute.CallFunction(ctx, "list_element", nil, args[0], compute.NewDatum(int32(1)))
		}),
	function("cast", compute.SafeCastOptions(arrow.BinaryTypes.String), func(in columns) arrow.Array {
		return in.colours
	}),
	function("cast", compute.SafeCastOptions(arrow.BinaryTypes.LargeString), func(in columns) arrow.Array {
		return in.names
	}),
	function("cast", compute.SafeCastOptions(arrow.BinaryTypes.StringView), func(in columns) arrow.Array {
		return in.names
	}),
	function("cast", compute.SafeCastOptions(&arrow.Decimal128Type{Precision: 20, Scale: 2}),
		func(in columns) arrow.Array { return in.ages }),
	function("unique", nil, func(in columns) arrow.Array { return in.colours }),
	function("negate", nil, func(in columns) arrow.Array { return in.ages }),
}
