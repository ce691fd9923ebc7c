package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// section is what one part shows: a table, and what was not as promised.
type section struct {
	title string
	head  []string
	rows  [][]string
	notes []string
	wrong []string
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// report prints the results, puts them into a file if one is named, and returns what was not as promised.
func report(about string, sections []section, file string) error {
	text, wrong := about+"\n", []error(nil)
	for _, s := range sections {
		text += "\n" + s.markdown()
		for _, w := range s.wrong {
			wrong = append(wrong, errors.New(w))
		}
	}
	fmt.Print(text)
	if file != "" {
		wrong = append(wrong, write(file, text))
	}
	return errors.Join(wrong...)
}

func (s section) markdown() string {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s\n\n", s.title)
	fmt.Fprintf(&text, "| %s |\n|%s\n", strings.Join(s.head, " | "), strings.Repeat("---|", len(s.head)))
	for _, row := range s.rows {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
	}
	for _, n := range append(s.notes, s.wrong...) {
		fmt.Fprintf(&text, "\n%s\n", n)
	}
	return text.String()
}

// The results stand between these lines of the document.
const (
	openMark  = "<!-- results -->\n"
	closeMark = "<!-- /results -->\n"
)

func write(file, results string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := place(string(old), results)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// place puts results into a document.
func place(document, results string) (string, error) {
	before, rest, opens := strings.Cut(document, openMark)
	_, after, closes := strings.Cut(rest, closeMark)
	if !opens || !closes {
		return "", fmt.Errorf("no lines %q and %q", strings.TrimSpace(openMark), strings.TrimSpace(closeMark))
	}
	return before + openMark + "\n" + results + "\n" + closeMark + after, nil
}
