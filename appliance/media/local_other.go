//go:build !unix

package media

// doNotWait is nothing where no pipe has a name in a folder.
const doNotWait = 0
