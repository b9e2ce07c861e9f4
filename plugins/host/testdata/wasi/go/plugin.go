//go:build wasip1

// What Go's runtime and library ask WASI for, said line by line.
package main

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"time"
)

func init() { Hooks = Plugin{Open: open, Plan: plan} }
func main() {}

func open() int32 {
	fmt.Println("args", len(os.Args), "environment", len(os.Environ()))
	_, err := os.ReadFile("/etc/passwd")
	_, err2 := os.Stdin.Read(make([]byte, 1))
	fmt.Fprintln(os.Stderr, "file", err != nil, "input", err2 != nil)
	a, b := make([]byte, 8), make([]byte, 8)
	_, err = rand.Read(a)
	_, err2 = rand.Read(b)
	fmt.Println("random", err == nil && err2 == nil && string(a) != string(b), fmt.Sprintf("%x", a), mathrand.Uint64() != mathrand.Uint64())
	began := time.Now()
	fmt.Println("time", began.Unix() > 0 && began.UnixNano() < 2e9)
	time.Sleep(time.Hour)
	fmt.Println("slept", time.Since(began).Truncate(time.Minute))
	for until := time.Now().Add(time.Millisecond); time.Now().Before(until); {
	}
	c := make(chan int)
	go func() {
		time.Sleep(2 * time.Second)
		c <- 7
	}()
	select {
	case v := <-c:
		fmt.Println("channel", v)
	case <-time.After(time.Second):
		fmt.Println("timeout")
	}
	fmt.Println("channel", <-c)
	kept := map[int][]byte{}
	for i := range 200 {
		kept[i%10] = make([]byte, 10_000)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println("collected", m.NumGC > 0, len(kept))
	return 0
}

func plan(f *Frame) int32 {
	switch Number("/config/mode", 0) {
	case 1:
		os.Exit(3)
	case 2:
		panic("on purpose")
	case 3:
		select {} // everybody sleeps
	}
	fmt.Print("step ", f.Step, "\n")
	return 0
}
