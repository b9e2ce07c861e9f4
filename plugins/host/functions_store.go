package host

import (
	"encoding/json"
	"strings"

	"ganglion/plugins/abi"
)

func (i *Instance) kvKey(at, n uint32) (string, int32) {
	switch {
	case !i.can(abi.CapKV) || i.services.Store == nil:
		return "", abi.NotPermitted
	case n == 0:
		return "", abi.Invalid
	case n > maxStoreKey:
		return "", abi.OverQuota
	}
	b, ok := i.input(at, n)
	if !ok {
		return "", abi.Invalid
	}
	i.burn(writeFuel * int64(len(i.state.writes))) // looking through them
	return string(b), 0
}

func (i *Instance) kvGet(at, n, out, capacity uint32) int32 {
	key, r := i.kvKey(at, n)
	if r != 0 {
		return r
	}
	v, ok := i.state.get(key)
	if !ok {
		return abi.NotFound
	}
	return i.give(v, out, capacity)
}

func (i *Instance) kvSet(at, n, from, size uint32) int32 {
	key, r := i.kvKey(at, n)
	if r != 0 {
		return r
	}
	if size > maxStoreValue {
		return abi.OverQuota
	}
	b, ok := i.input(from, size)
	if !ok {
		return abi.Invalid
	}
	if !i.state.set(key, append(make([]byte, 0, len(b)+1), b...)) { // never nil: that deletes
		return abi.OverQuota
	}
	return 0
}

func (i *Instance) kvDel(at, n uint32) int32 {
	key, r := i.kvKey(at, n)
	if r != 0 {
		return r
	}
	if _, ok := i.state.get(key); ok && !i.state.set(key, nil) {
		return abi.OverQuota
	}
	return 0
}

func (i *Instance) assetRead(name, n, off, out, capacity uint32) int32 {
	if n > maxAssetName {
		return abi.NotFound
	}
	b, ok := i.input(name, n)
	if !ok {
		return abi.Invalid
	}
	asset, ok := i.p.assets[string(b)]
	switch {
	case !ok:
		return abi.NotFound
	case uint64(off) >= uint64(len(asset)):
		return 0
	}
	rest := asset[off:]
	return i.give(rest[:min(len(rest), int(capacity))], out, capacity)
}

func (i *Instance) metaSet(at, n, from, size uint32) int32 {
	if uint64(i.meta)+uint64(n)+uint64(size) > maxMeta {
		return abi.OverQuota
	}
	i.burn(metaFuel * int64(n+size))
	key, ok1 := i.bytes(at, n)
	value, ok2 := i.bytes(from, size)
	if !ok1 || !ok2 || n == 0 || !json.Valid(value) {
		return abi.Invalid
	}
	i.meta += int(n) + int(size)
	if i.services.Meta != nil {
		i.services.Meta(strings.ToValidUTF8(string(key), "\uFFFD"), append([]byte(nil), value...))
	}
	return 0
}
