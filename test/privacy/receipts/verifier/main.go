// Verifies proofs of a log with the packages of Go's checksum database, which share nothing with millrace.
// Input, a line each: key of the log, entry (base64), proof (base64 of c2sp.org/tlog-proof@v1). Output, a line each: "ok SIZE INDEX" or why not.
package main

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func verify(key, entry, proof string) (string, error) {
	verifier, err := note.NewVerifier(key)
	if err != nil {
		return "", err
	}
	head, signed, found := strings.Cut(proof, "\n\n")
	if !found {
		return "", errors.New("no checkpoint")
	}
	opened, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil {
		return "", err
	}
	text := strings.Split(opened.Text, "\n")
	if len(text) != 4 || text[0] != verifier.Name() {
		return "", fmt.Errorf("checkpoint of %q", text[0])
	}
	size, err := strconv.ParseInt(text[1], 10, 64)
	if err != nil {
		return "", err
	}
	root, err := tlog.ParseHash(text[2])
	if err != nil {
		return "", err
	}
	lines := strings.Split(head, "\n")
	if lines[0] != "c2sp.org/tlog-proof@v1" || len(lines) < 2 {
		return "", errors.New("not a proof")
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64)
	if err != nil {
		return "", err
	}
	var path tlog.RecordProof
	for _, line := range lines[2:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return "", err
		}
		path = append(path, hash)
	}
	bytes, err := base64.StdEncoding.DecodeString(entry)
	if err != nil {
		return "", err
	}
	if err := tlog.CheckRecord(path, size, root, index, tlog.RecordHash(bytes)); err != nil {
		return "", err
	}
	return fmt.Sprintf("ok %d %d", size, index), nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		proof, _ := base64.StdEncoding.DecodeString(fields[2])
		said, err := verify(fields[0], fields[1], string(proof))
		if err != nil {
			said = err.Error()
		}
		fmt.Println(said)
	}
}
