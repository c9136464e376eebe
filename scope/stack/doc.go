// Package stack is the machinery of package scope: the Go side of an arena with nested scopes. It
// closes scopes and runs their finalizers, works out the reason of each refusal, keeps the ledger
// of the arena's bytes, and lists the arenas, pools and owned values in the scopes.
//
// It is for the packages of this module that own arenas (budget and save), that keep their own data
// in scopes (container and cache), and for package scope. Programs use package scope.
//
// A scope is two words: the header of one end of an arena, and the scope's generation. The near end
// has the scopes that Open made, and the far end has temporaries. The functions of this package
// take these words where package scope has a Scope. The words of the zero Scope aren't valid here.
package stack
