import { workerData } from 'node:worker_threads';
import { answerJobs } from '../lib/thread-pool.ts';
import { Tables } from '../tables/tables.ts';
import { buffersOf, jobRunner, type ThreadData } from './shaping-jobs.ts';

// The program of a thread that does jobs one after another.
const { documents, ...terms } = workerData as ThreadData;
answerJobs(jobRunner({ ...terms, tables: new Tables(documents) }), buffersOf);
