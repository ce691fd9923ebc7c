// Package deploy holds the files with which process managers run queuekeeper; README.md says which is for which. It
// has tests only: they run every manager that this machine has with these very files.
package deploy
