/* commit.pml: an order is charged once, delivered only if charged, and no flavour is oversold;
 * whatever is lost, repeated or overtaken on the way, and though a screen forgets.
 *
 * Two screens, one with an order of one scoop, one of two; two scoops are there. A robot makes a cup
 * for an attempt; a screen that waits in vain has another one made. Datagrams lie in a bag, from
 * which any may be taken, twice, or never. The ledger is the only thing that decides.
 *
 * Rules that can be removed, each of which has to make this model fail (see tools/models):
 *   NO_CAPACITY_CHECK    the ledger commits whatever was prepared
 *   NO_STORED_ANSWER     a repeated COMMIT is carried out again
 *   COMMIT_UNPREPARED    the ledger commits an order that it has aborted
 *   DELIVER_ON_READY     a screen hands the cup over when the robot is ready
 *   DELIVER_ANY_CUP      a screen hands over the cup it has, not the one that was committed
 */
#define ORDERS 2
#define CAPACITY 2
#define scoops(order) (order + 1)
#define ATTEMPTS 2

mtype = { PREPARE, COMMIT, CANCEL, READY, FINISHED, ABORT };
mtype = { none, prepared, committed, aborted };

chan to_gateway = [2] of { mtype, byte, byte };            /* what, order, attempt */
chan to_screen[ORDERS] = [1] of { mtype, byte };           /* what, attempt */

mtype ledger[ORDERS] = none;
byte attempt_of[ORDERS];
byte sold, charges[ORDERS];
bool was_aborted[ORDERS];
byte delivered[ORDERS];        /* cups handed over */

/* Put into a bag that is full, a datagram is lost. */
inline post_to_gateway(what, order, attempt) {
    if
    :: nfull(to_gateway) -> to_gateway!what(order, attempt)
    :: full(to_gateway)
    fi
}
inline answer(order, what, attempt) {
    if
    :: nfull(to_screen[order]) -> to_screen[order]!what(attempt)
    :: full(to_screen[order])
    fi
}

#if defined(COMMIT_UNPREPARED)
#define may_commit(state) (state == prepared || state == aborted)
#elif defined(NO_STORED_ANSWER)
#define may_commit(state) (state == prepared || state == committed)
#else
#define may_commit(state) (state == prepared)
#endif

#ifdef NO_CAPACITY_CHECK
#define enough true
#else
#define enough (sold + scoops(order) <= CAPACITY)
#endif

inline commit(order, attempt) {
    if
    :: may_commit(ledger[order]) ->
        if
        :: !enough -> ledger[order] = aborted; answer(order, ABORT, 0)
        :: enough ->
            ledger[order] = committed;
            attempt_of[order] = attempt;
            sold = sold + scoops(order);
            charges[order]++;
            answer(order, FINISHED, attempt)
        fi
    :: else ->
        if
        :: ledger[order] == committed -> answer(order, FINISHED, attempt_of[order])
        :: ledger[order] != committed -> answer(order, ABORT, 0)
        fi
    fi
}

active proctype gateway() {
    mtype what;
    byte order, attempt;
end:
    do
    :: atomic {
        /* any of them: datagrams overtake each other */
        to_gateway??what, order, attempt;
        if
        :: post_to_gateway(what, order, attempt)           /* it comes again */
        :: true
        fi;
        if
        :: what == PREPARE ->
            if
            :: ledger[order] == none ->
                if                                         /* the card is refused, once for all */
                :: ledger[order] = prepared
                :: ledger[order] = aborted
                fi
            :: else
            fi;
            if
            :: ledger[order] == aborted -> answer(order, ABORT, 0)
            :: else -> answer(order, READY, 0)
            fi
        :: what == COMMIT -> commit(order, attempt)
        :: what == CANCEL ->
            if
            :: ledger[order] == prepared -> ledger[order] = aborted
            :: else
            fi
        fi;
        what = 0; order = 0; attempt = 0;
        assert(sold <= CAPACITY);                          /* I1 */
        was_aborted[0] = was_aborted[0] || ledger[0] == aborted;
        was_aborted[1] = was_aborted[1] || ledger[1] == aborted;
        assert(charges[0] <= 1 && charges[1] <= 1);        /* I2 */
        assert(!(was_aborted[0] && charges[0] > 0));
        assert(!(was_aborted[1] && charges[1] > 0))
       }
    od
}

/* The attempts for which the screen has a cup are a set: it may have a late one from a robot that was
 * given up. */
#ifdef DELIVER_ANY_CUP
#define has_cup (cups != 0)
#define handed_over attempt
#else
#define has_cup ((cups & (1 << cup)) != 0)
#define handed_over cup
#endif

proctype screen(byte order) {
    mtype what;
    byte attempt = 0, cup, cups = 0;

    do
    /* what was not answered is sent again, as often as one likes */
    :: attempt == 0 -> post_to_gateway(PREPARE, order, 0)
    :: attempt > 0 && cups != 0 -> post_to_gateway(COMMIT, order, attempt)
    :: attempt > 0 && cups == 0 -> post_to_gateway(CANCEL, order, 0)  /* no robot had enough */
    /* a robot is ready with a cup of this attempt; those of older ones are kept */
    :: attempt > 0 -> atomic {
        cups = cups | (1 << attempt);
#ifdef DELIVER_ON_READY
        delivered[order]++;
        assert(ledger[order] == committed);                /* I3 */
        goto over
#endif
       }
    /* it takes too long: another robot */
    :: attempt > 0 && attempt < ATTEMPTS -> attempt++
    /* the process dies, and remembers what it had journalled: that it was prepared */
    :: attempt > 0 && cups != 0 -> cups = 0
    :: atomic {
        to_screen[order]??what, cup;
        if
        :: what == READY && attempt == 0 -> attempt = 1
        :: what == ABORT -> goto over
        :: what == FINISHED && has_cup ->
            delivered[order]++;
            assert(ledger[order] == committed);            /* I3 */
            assert(handed_over == attempt_of[order]);      /* the cup that was paid for */
            goto over
        :: else                                            /* it is made again */
        fi;
        what = 0; cup = 0
       }
    od;
over:
    assert(delivered[order] <= 1)
}

init {
    atomic {
        run screen(0);
        run screen(1)
    }
}
