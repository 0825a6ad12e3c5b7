import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type Router } from 'express';
import { lackOf } from '../lib/installed.ts';

const PACKAGE = '@duckdb/duckdb-wasm';

/**
 * Programs of the SQL page, from the packages beside millrace: DuckDB, where it is installed, and what reads Parquet. Only
 * DuckDB's own thread may compile WebAssembly, and it reaches this server and no other.
 */
export function sqlFiles(): Router {
  const files = express.Router();
  files.get('/duckdb/status', (_request, response) => {
    response.json({ lack: lackOf([PACKAGE]) });
  });
  files.get('/duckdb/worker.js', (_request, response, next) => {
    response.setHeader('content-security-policy', WORKER_POLICY);
    sendOwn(response, next, `${PACKAGE}/dist/duckdb-browser-eh.worker.js`);
  });
  files.get('/duckdb/duckdb.wasm', (_request, response, next) => {
    sendOwn(response, next, `${PACKAGE}/dist/duckdb-eh.wasm`);
  });
  const hyparquet = dirname(fileURLToPath(import.meta.resolve('hyparquet')));
  files.use('/hyparquet', express.static(hyparquet, { cacheControl: false, setHeaders: revalidated }));
  return files;
}

const WORKER_POLICY = "default-src 'none'; script-src 'wasm-unsafe-eval'; connect-src 'self'";

function revalidated(response: { setHeader(name: string, value: string): unknown }): void {
  response.setHeader('cache-control', 'no-cache');
}

function sendOwn(response: express.Response, next: express.NextFunction, name: string): void {
  let path: string;
  try {
    path = fileURLToPath(import.meta.resolve(name));
  } catch {
    return next();
  }
  revalidated(response);
  // Its folder may have a name that begins with a dot.
  response.sendFile(path, { cacheControl: false, dotfiles: 'allow' });
}
