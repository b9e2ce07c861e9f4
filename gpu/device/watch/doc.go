// Package watch makes the calls of a device come back: a driver may hang inside any of
// them, and who waits for a text must not hang with it.
//
// A fence has its own timeout; opening a device, submitting, compiling, allocating and
// copying have none in any API. Here each call runs on a goroutine that belongs to the
// device, and is left there when it has not come back in the time that such a call may
// take (Limits). From then on the device counts as one that does not answer: Health says
// so, every call fails at once with an error that wraps device.ErrTimeout, and nothing
// enters the driver any more but, where it comes back after all, the device's Close.
//
// What a call was given may be read as long as the driver has not come back, so buffers
// that were written from are not reused before; what is read reaches the caller only when
// the call has ended in time.
package watch
