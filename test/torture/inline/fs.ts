// Stands in for node:fs: a recovery is judged by what it leaves, and nothing cuts it short, so it has nothing to sync.
export * from 'node:fs';

export function fsyncSync(): void {}

export function fdatasyncSync(): void {}
