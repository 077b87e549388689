/* token.pml: of each generation of a token there is one holder at most, whatever is lost, repeated or
 * wrongly suspected.
 *
 * A ring of three robots and one token. A robot passes it on, keeps it until that is acknowledged, and
 * repeats it. Any robot may believe at any time that the token is lost, and makes a new generation.
 *
 * Rules that can be removed, each of which has to make this model fail (see tools/models):
 *   ACCEPT_OLD      a robot accepts a token that is not newer than the last
 *   USE_AFTER_SEND  a robot goes on using what it has sent, until that is acknowledged
 *   SAME_GENERATION a regenerated token has the generation of the lost one
 *   COUNT_ONLY      generations are counted, and do not name the robot that made them: two that
 *                   suspect at the same time make the same one
 */
#define ROBOTS 3
#define REPAIRS 2
#define HOPS 3

chan net[ROBOTS] = [2] of { byte, byte };                  /* generation, hop: on the way to a robot */

byte seen_gen[ROBOTS], seen_hop[ROBOTS];                   /* the greatest place accepted */
bool holds[ROBOTS];
byte made = 0;                                             /* repairs so far */

#define next(r) ((r + 1) % ROBOTS)
#define newer(g, h, r) (g > seen_gen[r] || (g == seen_gen[r] && h > seen_hop[r]))

inline check_holders() {
    assert(!(holds[0] && holds[1] && seen_gen[0] == seen_gen[1]));  /* I4 */
    assert(!(holds[1] && holds[2] && seen_gen[1] == seen_gen[2]));
    assert(!(holds[0] && holds[2] && seen_gen[0] == seen_gen[2]))
}

inline pass_on(r) {
    if
    :: nfull(net[next(r)]) -> net[next(r)]!seen_gen[r], seen_hop[r] + 1
    :: full(net[next(r)])
    fi
}

/* A number that nobody else makes: the count, then the robot. */
#ifdef COUNT_ONLY
#define generation(g, r) (g / ROBOTS * ROBOTS + ROBOTS)
#else
#define generation(g, r) (g / ROBOTS * ROBOTS + ROBOTS + r)
#endif

proctype robot(byte r) {
    byte g, h;
    bool sent = false;
end:
    do
    :: atomic {
        net[r]??g, h;
        if                                                 /* a datagram may come again */
        :: nfull(net[r]) -> net[r]!g, h
        :: true
        fi;
        if
#ifdef ACCEPT_OLD
        :: true ->
#else
        :: newer(g, h, r) ->
#endif
            seen_gen[r] = g; seen_hop[r] = h;
            holds[r] = true; sent = false;
            check_holders()
        :: else
        fi;
        g = 0; h = 0
       }
    :: atomic {                                            /* done with it, or sends it again */
        (holds[r] || sent) && seen_hop[r] < HOPS ->
        pass_on(r);
        sent = true;
#ifndef USE_AFTER_SEND
        holds[r] = false
#endif
       }
    :: atomic { sent -> sent = false; holds[r] = false }   /* acknowledged */
    :: atomic {                                            /* suspects, rightly or not */
        made < REPAIRS ->
        made++;
#ifdef SAME_GENERATION
        seen_hop[r]++;
#else
        seen_gen[r] = generation(seen_gen[r], r);
        seen_hop[r] = 0;
#endif
        holds[r] = true; sent = false;
        check_holders()
       }
    od
}

init {
    atomic {
        holds[0] = true;                                   /* generation 0, made by robot 0 */
        run robot(0);
        run robot(1);
        run robot(2)
    }
}
