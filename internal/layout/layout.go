// Package layout holds what is true of the tree as a whole: which room may use which, that every room says what it
// is, that the tree builds where it is developed. It has tests only.
package layout
