// Package cpu runs plans on the processor.
package cpu
