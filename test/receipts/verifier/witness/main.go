// A witness of one log (c2sp.org/tlog-witness), with the packages of Go's checksum database, which share nothing with millrace.
// Arguments: key of the log, file of its own state and seed, and where to listen. Prints its address and its key; answers until it is killed.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const name = "witness.made-up.example/w1"

type state struct {
	Seed []byte
	Size int64
	Root tlog.Hash
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func keyID(public ed25519.PublicKey) []byte {
	sum := sha256.Sum256(append([]byte(name+"\n\x04"), public...))
	return sum[:4]
}

// cosign answers one request: a status and a body.
func (s *state) cosign(log note.Verifier, body []byte) (int, string) {
	head, signed, found := bytes.Cut(body, []byte("\n\n"))
	if !found {
		return 400, "no checkpoint"
	}
	opened, err := note.Open(signed, note.VerifierList(log))
	if err != nil {
		return 403, err.Error()
	}
	text := strings.Split(opened.Text, "\n")
	if len(text) != 4 || text[0] != log.Name() {
		return 404, "unknown origin"
	}
	size, err := strconv.ParseInt(text[1], 10, 64)
	if err != nil {
		return 400, err.Error()
	}
	root, err := tlog.ParseHash(text[2])
	if err != nil {
		return 400, err.Error()
	}
	lines := strings.Split(string(head), "\n")
	old, err := strconv.ParseInt(strings.TrimPrefix(lines[0], "old "), 10, 64)
	if err != nil || !strings.HasPrefix(lines[0], "old ") || old > size {
		return 400, "bad old size"
	}
	var proof tlog.TreeProof
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return 400, err.Error()
		}
		proof = append(proof, hash)
	}
	if old != s.Size || (old == size && root != s.Root && s.Size > 0) {
		return 409, fmt.Sprintf("%d\n", s.Size)
	}
	if old > 0 && old < size {
		if err := tlog.CheckTree(proof, size, root, old, s.Root); err != nil {
			return 422, err.Error()
		}
	} else if len(proof) > 0 {
		return 422, "proof of nothing"
	}
	s.Size, s.Root = size, root
	key := ed25519.NewKeyFromSeed(s.Seed)
	now := time.Now().Unix()
	signature := ed25519.Sign(key, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", now, opened.Text)))
	line := append([]byte{}, keyID(key.Public().(ed25519.PublicKey))...)
	line = binary.BigEndian.AppendUint64(line, uint64(now))
	line = append(line, signature...)
	return 200, fmt.Sprintf("— %s %s\n", name, base64.StdEncoding.EncodeToString(line))
}

func main() {
	log, err := note.NewVerifier(os.Args[1])
	must(err)
	file := os.Args[2]
	s := &state{Seed: make([]byte, ed25519.SeedSize)}
	if kept, err := os.ReadFile(file); err == nil {
		must(json.Unmarshal(kept, s))
	} else {
		_, err := rand.Read(s.Seed)
		must(err)
	}
	var turn sync.Mutex
	http.HandleFunc("/made-up/add-checkpoint", func(answer http.ResponseWriter, request *http.Request) {
		turn.Lock()
		defer turn.Unlock()
		body, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
		status, said := 400, "unreadable"
		if err == nil && request.Method == http.MethodPost {
			status, said = s.cosign(log, body)
		}
		if status == 200 {
			kept, err := json.Marshal(s)
			must(err)
			must(os.WriteFile(file, kept, 0o600))
		}
		if status == 409 {
			answer.Header().Set("Content-Type", "text/x.tlog.size")
		}
		answer.WriteHeader(status)
		_, _ = io.WriteString(answer, said)
	})
	listener, err := net.Listen("tcp", os.Args[3])
	must(err)
	public := ed25519.NewKeyFromSeed(s.Seed).Public().(ed25519.PublicKey)
	typed := append([]byte{4}, public...)
	fmt.Printf("http://%s/made-up %s+%x+%s\n", listener.Addr(), name, keyID(public), base64.StdEncoding.EncodeToString(typed))
	must(http.Serve(listener, nil))
}
