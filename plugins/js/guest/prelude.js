// What scripts have besides JavaScript: names of the ABI, the frame, Math.random from the
// request's seed. It runs before the script in the same global scope.
const EDITS = 1, MASK = 2, CANDS = 4, FULL = 8, TEMP = 16, TOKEN = 32, FORCE = 64,
	BACKTRACK = 128, STOP = 256, TEXT = 512, IDLE = 1024;
const ADD = 0, SET = 1, MUL_SIGNED = 2, BAN = 3, MIN = 4, MAX = 5;
Math.random = __random;
globalThis.__frame = (block) => {
	const u = new Uint32Array(block, 0, 64), f = new Float32Array(block, 0, 64), decoder = (off, n) => {
		let s = "";
		for (const b of new Uint8Array(block, off, n)) s += "%" + (256 + b).toString(16).slice(1);
		return decodeURIComponent(s);
	};
	const part = (Type, off, n) => off ? new Type(block, off, n) : new Type(0);
	const room = {
		ids: part(Uint32Array, u[17], u[15]), logits: part(Float32Array, u[18], u[15]),
		edits: part(Uint32Array, u[24], 2 * u[25]), values: part(Float32Array, u[24], 2 * u[25]),
		mask: part(Uint32Array, u[23], u[23] ? (u[8] + 31) >>> 5 : 0),
	};
	const frame = {
		ids: room.ids, logits: room.logits, mask: room.mask,
		get full() { return part(Float32Array, u[22], u[8]); },
		get history() { return part(Uint32Array, u[12], u[13]); },
		get gathered() { return part(Float32Array, u[21], u[19]); },
		get tokensIn() { return part(Uint32Array, u[30], u[31]); },
		get textIn() { return decoder(u[30], u[31]); },
		get random() { return new Uint32Array(block, 0xA0, 8); },
		edit(id, op, value) {
			if (u[26] >= u[25]) return false;
			room.edits[2 * u[26]] = id | op << 28;
			room.values[2 * u[26]++ + 1] = value;
			return true;
		},
		force(...ids) { new Uint32Array(block, u[27], u[28] >>> 2).set(ids, u[29]); u[29] += ids.length; return FORCE; },
		say(text) {
			const out = new Uint8Array(block, u[27], u[28]);
			let n = 0;
			for (const c of encodeURIComponent(text).matchAll(/%(..)|./g)) out[n++] = c[1] ? parseInt(c[1], 16) : c[0].charCodeAt(0);
			u[29] = n;
			return TEXT;
		},
		allow(id) { room.mask[id >>> 5] |= 1 << (id & 31); },
		deny(id) { room.mask[id >>> 5] &= ~(1 << (id & 31)); },
		// vocabMask writes a mask of the host (ABI.md, vocab_mask) into f.mask or another array.
		vocabMask(kind, text, into = room.mask) { return __mask(kind, text, new Uint8Array(into.buffer, into.byteOffset, into.byteLength)); },
	};
	const words = { flags: 4, step: 5, position: 6, sequence: 7, vocab: 8, lastToken: 9, nPrompt: 10, nGenerated: 11, historyPos: 14,
		candN: 16, editN: 26, outN: 29, nFinite: 39, token: 48, backtrack: 49, stopReason: 50, wakeStep: 51 };
	const floats = { max: 32, mean: 33, std: 34, logsumexp: 35, entropy: 36, candMass: 37, temperature: 38 };
	for (const [name, i] of Object.entries(words)) Object.defineProperty(frame, name, { get: () => u[i], set: (v) => { u[i] = v; } });
	for (const [name, i] of Object.entries(floats)) Object.defineProperty(frame, name, { get: () => f[i], set: (v) => { f[i] = v; } });
	return frame;
};
