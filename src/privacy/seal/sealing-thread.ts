import { answerJobs, lowerPriority } from '../../lib/thread-pool.ts';
import { sealed } from './job.ts';

lowerPriority();
answerJobs(sealed, ({ buffer }) => [buffer]);
