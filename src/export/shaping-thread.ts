import { workerData } from 'node:worker_threads';
import { answerJobs } from '../lib/thread-pool.ts';
import { Tables } from '../tables/tables.ts';
import { handedOver, shapesJobs, type ThreadData } from './shaping-jobs.ts';

// A thread that shapes units and joins columns, one job after another.
const { documents, ...terms } = workerData as ThreadData;
answerJobs(shapesJobs({ ...terms, tables: new Tables(documents) }), handedOver);
