// Package arch holds no code: its tests check the shape of the repository, so that what the documents say of it stays true.
package arch
