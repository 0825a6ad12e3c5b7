// Verify and file in Go: the same as vf.ts beside this folder, with net/http and the standard library only.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const toleranceSeconds = 3600

type envelope struct {
	Type string `json:"event_type"`
	Team string `json:"team_id"`
	User string `json:"user_id"`
}

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for at := 0; at < 36; at++ {
		c := text[at]
		switch at {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return false
			}
		}
	}
	return true
}

// groupLog is an append-only file; what comes while one write and its fdatasync run shares the next.
type groupLog struct {
	file    *os.File
	mutex   sync.Mutex
	pending []byte
	waiting []chan error
	wake    chan struct{}
}

func newGroupLog(path string) *groupLog {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	log := &groupLog{file: file, wake: make(chan struct{}, 1)}
	go log.run()
	return log
}

func (log *groupLog) append(id string, body []byte) error {
	done := make(chan error, 1)
	log.mutex.Lock()
	log.pending = append(log.pending, id...)
	log.pending = append(log.pending, ' ')
	log.pending = strconv.AppendInt(log.pending, int64(len(body)), 10)
	log.pending = append(log.pending, '\n')
	log.pending = append(log.pending, body...)
	log.pending = append(log.pending, '\n')
	log.waiting = append(log.waiting, done)
	log.mutex.Unlock()
	select {
	case log.wake <- struct{}{}:
	default:
	}
	return <-done
}

func (log *groupLog) run() {
	var bytes []byte
	var waiting []chan error
	for range log.wake {
		log.mutex.Lock()
		bytes, log.pending = log.pending, bytes[:0]
		waiting, log.waiting = log.waiting, waiting[:0]
		log.mutex.Unlock()
		if len(waiting) == 0 {
			continue
		}
		_, err := log.file.Write(bytes)
		if err == nil {
			err = syscall.Fdatasync(int(log.file.Fd()))
		}
		for _, done := range waiting {
			done <- err
		}
	}
}

func main() {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("RIVAL_SECRET"), "whsec_"))
	if err != nil {
		panic(err)
	}
	log := newGroupLog(os.Args[1])
	macs := sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	answer := func(response http.ResponseWriter, status int, text string) {
		response.Header().Set("Content-Type", "application/json")
		response.WriteHeader(status)
		_, _ = io.WriteString(response, text)
	}
	http.HandleFunc("POST /webhook/bench", func(response http.ResponseWriter, request *http.Request) {
		buffer := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(buffer)
		buffer.Reset()
		if _, err := buffer.ReadFrom(request.Body); err != nil {
			return
		}
		body := buffer.Bytes()
		id := request.Header.Get("Webhook-Id")
		timestamp := request.Header.Get("Webhook-Timestamp")
		signed, err := strconv.ParseFloat(timestamp, 64)
		if err != nil || !(math.Abs(float64(time.Now().Unix())-signed) < toleranceSeconds) {
			answer(response, 401, `{"error":"too old or too new"}`)
			return
		}
		mac := macs.Get().(hash.Hash)
		defer macs.Put(mac)
		mac.Reset()
		_, _ = io.WriteString(mac, id+"."+timestamp+".")
		_, _ = mac.Write(body)
		expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		matches := false
		for _, signature := range strings.Split(request.Header.Get("Webhook-Signature"), " ") {
			matches = matches || hmac.Equal([]byte(signature), expected)
		}
		if !matches {
			answer(response, 401, `{"error":"no signature matches"}`)
			return
		}
		var event envelope
		if json.Unmarshal(body, &event) != nil || event.Type == "" || !isUUID(event.Team) || !isUUID(event.User) {
			answer(response, 400, `{"error":"not an event"}`)
			return
		}
		if log.append(id, body) != nil {
			answer(response, 503, `{"error":"not stored"}`)
			return
		}
		answer(response, 202, `{"status":"accepted","id":"`+id+`"}`)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("{\"port\":%d}\n", listener.Addr().(*net.TCPAddr).Port)
	_ = http.Serve(listener, nil)
}
